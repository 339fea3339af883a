// The console. What is shown follows from the address's fragment alone: `#view?query`, so that back, forward and bookmarks work.
// The key is kept in the tab's session storage and sent in a header; values enter the page as text only.

const KEY = 'contextmeter.key';
const PLATFORM = 'contextmeter.platform';

const $ = (selector, inside = document) => inside.querySelector(selector);
const $$ = (selector, inside = document) => [...inside.querySelectorAll(selector)];

// --- Elements -------------------------------------------------------------------------------------------------------

/** An element with attributes and children; text becomes text, never markup. */
function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const text = (value) => (value === null || value === undefined ? '–' : String(value.rawJSON ?? value));
const code = (value) => el('code', {}, text(value));
const grouped = (value) => text(value).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
const time = (value) =>
  value ? el('time', { datetime: value }, value.replace('T', ' ').replace(/(:00)?(\.\d+)?Z$/, ' UTC')) : '–';
const go = (view, query, label) => el('a', { href: `#${view}?${new URLSearchParams(query)}` }, label);

/** How many digits of an amount stand behind the point, where it is not two; as Stripe counts, not as banks do. */
const DIGITS = Object.fromEntries([
  ...['bif', 'clp', 'djf', 'gnf', 'jpy', 'kmf', 'krw', 'mga', 'pyg', 'rwf', 'vnd', 'vuv', 'xaf', 'xof', 'xpf'].map((c) => [c, 0]),
  ...['bhd', 'jod', 'kwd', 'omr', 'tnd'].map((c) => [c, 3]),
]);

function money(amount, currency) {
  const digits = DIGITS[currency] ?? 2;
  const [, sign, number] = /^(-?)(.*)$/.exec(text(amount));
  const padded = number.padStart(digits + 1, '0');
  const point = padded.length - digits;
  const rest = digits ? `.${padded.slice(point)}` : '';
  return `${sign}${grouped(padded.slice(0, point))}${rest} ${text(currency).toUpperCase()}`;
}

/** A table of columns `[title, cell of a row, is a number]`. */
function table(caption, columns, rows) {
  const cell = (name, [, , number], ...children) => el(name, { class: number ? 'number' : undefined }, ...children);
  return el('table', {},
    el('caption', {}, caption),
    el('thead', {}, el('tr', {}, columns.map((column) => {
      const head = cell('th', column, column[0]);
      head.setAttribute('scope', 'col');
      return head;
    }))),
    el('tbody', {}, rows.map((row) => el('tr', {}, columns.map((column) => cell('td', column, column[1](row)))))));
}

const facts = (pairs) =>
  el('dl', {}, pairs.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));
const badge = (value, kind) => el('span', { class: `badge ${kind}` }, value);

// --- Asking the service ---------------------------------------------------------------------------------------------

/** A number that this browser cannot keep digit by digit. */
class Unkept {
  toString() { return 'too large for this browser'; }
  toJSON() { throw new Error('This browser rounds a number of the file; use `contextmeter dispute` instead.'); }
}

const parse = (body) =>
  JSON.parse(body, (_, value, context) => {
    if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
    return context?.source && JSON.rawJSON ? JSON.rawJSON(context.source) : new Unkept();
  });

/** What went wrong, as `application/problem+json` has it. */
class Problem extends Error {
  constructor(members) {
    super(members.title);
    this.members = members;
  }
}

async function ask(path, query, signal) {
  const headers = { authorization: `Bearer ${sessionStorage.getItem(KEY)}`, accept: 'application/json' };
  const platform = sessionStorage.getItem(PLATFORM);
  if (platform) headers['contextmeter-platform'] = platform;
  const search = String(query);
  let answer, body;
  try {
    answer = await fetch(search ? `${path}?${search}` : path,
      { headers, signal, cache: 'no-store', credentials: 'omit', redirect: 'error' });
    body = await answer.text();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem({ title: 'The service does not answer', detail: `Look whether it runs, and ask again. (${error.message})` });
  }
  const kind = answer.headers.get('content-type') ?? '';
  if (answer.ok && kind.startsWith('application/json')) return parse(body);
  if (kind.startsWith('application/problem+json')) throw new Problem({ ...parse(body), status: answer.status });
  throw new Problem({ title: `The service answered ${answer.status}`, detail: 'The answer is not one of its own; look whether something stands between.' });
}

function showProblem(section, error) {
  const { title, detail, code: name, pointer, request_id: request, status } =
    error instanceof Problem ? error.members : { title: 'The page failed', detail: error.message };
  const known = /^[a-z0-9_]+$/.test(name ?? '');
  $('[data-part=problem]', section).replaceChildren(el('div', { class: 'problem' },
    el('h2', {}, text(title)),
    detail ? el('p', {}, text(detail)) : null,
    pointer ? el('p', {}, 'At fault: ', code(pointer)) : null,
    known ? el('p', {}, el('a', { href: `/errors/${name}` }, `What ${name} means`)) : null,
    request ? el('p', { class: 'hint' }, `Status ${status}, request `, code(request)) : null));
}

// --- The views ------------------------------------------------------------------------------------------------------

const LISTS = {
  usage: {
    path: '/v1/usage',
    noun: ['line', 'lines'],
    render(rows) {
      return table('Usage by customer, provider and hour', [
        ['Customer', (row) => row.customer_id],
        ['Provider', (row) => row.provider_id],
        ['Hour', (row) => go('statements', { customer_id: row.customer_id, hour: row.hour }, time(row.hour))],
        ['Tokens', (row) => grouped(row.tokens), true],
        ['Frames', (row) => grouped(row.frames), true],
        ['Events', (row) => grouped(row.events), true],
      ], rows);
    },
    total(answer) {
      const { tokens, frames, events } = answer.total;
      return el('div', { class: 'total' }, facts([['Tokens', grouped(tokens)], ['Frames', grouped(frames)], ['Events', grouped(events)]]));
    },
  },
  statements: {
    path: '/v1/statements',
    noun: ['statement', 'statements'],
    render(rows) {
      return table('Statements', [
        ['Log', (row) => grouped(row.log_index), true],
        ['Statement', (row) => go('disputes', { statement_id: row.statement_id }, code(row.statement_id))],
        ['Customer', (row) => row.customer_id],
        ['Meter', (row) => row.meter_id],
        ['Hour', (row) => time(row.hour)],
        ['Revision', (row) => text(row.revision), true],
        ['Events', (row) => grouped(row.count), true],
        ['Sum', (row) => grouped(row.sum), true],
      ], rows);
    },
  },
  conflicts: {
    path: '/v1/conflicts',
    noun: ['conflict', 'conflicts'],
    render(rows) {
      return table('Conflicts', [
        ['Request', (row) => row.request_id],
        ['Turn', (row) => go('disputes', { request_id: row.request_id, turn_id: row.turn_id }, row.turn_id)],
        ['Hour', (row) => time(row.hour)],
        ['Contents', (row) => grouped(row.contents), true],
        ['First received', (row) => time(row.first_received_at)],
        ['Last received', (row) => time(row.last_received_at)],
      ], rows);
    },
  },
  invoices: { path: '/v1/invoices', noun: ['invoice', 'invoices'], render: (rows) => rows.map(invoice) },
};

function invoice(row) {
  const good = row.verdict === 'matched';
  const lines = table('Lines', [
    ['Line', (line) => go('disputes', { invoice_line: line.line_id }, code(line.line_id))],
    ['Description', (line) => text(line.description)],
    ['Meter', (line) => text(line.meter_id)],
    ['Quantity', (line) => grouped(line.quantity), true],
    ['Amount', (line) => money(line.amount, line.currency), true],
  ], row.lines);
  return el('article', {},
    el('h2', {}, code(row.invoice_id), ' ', badge(row.status, row.status === 'held' ? 'bad' : 'plain'), ' ',
      row.verdict ? badge(row.verdict.replace('_', ' '), good ? 'good' : 'bad') : null),
    row.reason ? el('p', {}, `Why: ${row.reason}`) : null,
    facts([
      ['Customer', row.customer_id], ['Expected', grouped(row.expected)], ['Billed', grouped(row.billed)],
      ['From', time(row.period_start)], ['Until', time(row.period_end)], ['Finalised', time(row.finalized_at)],
    ]),
    row.lines.length ? lines : el('p', {}, 'No lines yet.'));
}

/** One list, one page of it. */
async function list(section, view, query, signal) {
  const { path, noun, render, total } = LISTS[view];
  const answer = await ask(path, query, signal);
  const rows = answer.data;
  $('[data-part=total]', section).replaceChildren(...(total ? [total(answer)] : []));
  const shown = rows.length ? [render(rows)].flat() : [el('p', { class: 'empty' }, `No ${noun[1]}.`)];
  $('[data-part=list]', section).replaceChildren(...shown);
  const first = new URLSearchParams(query);
  first.delete('after');
  const pages = [];
  if (query.has('after')) pages.push(go(view, first, 'First page'));
  if (answer.next !== null) pages.push(go(view, { ...Object.fromEntries(first), after: answer.next }, 'Next page'));
  $('[data-part=pages]', section).replaceChildren(...pages);
  return `${rows.length} ${noun[rows.length === 1 ? 0 : 1]}${answer.next === null ? '' : ', and more on the next page'}`;
}

// --- A dispute's chain ----------------------------------------------------------------------------------------------

/** Events that a lookup answers when it is not told how many. */
const MOST = 10;

/** What the links on the page hold in memory until the next answer. */
let files = [];

function forgetFiles() {
  files.forEach((file) => URL.revokeObjectURL(file));
  files = [];
}

function step(title, figure, pairs, missing) {
  return el('li', { class: missing ? 'missing' : undefined },
    el('h3', {}, title), missing ? el('p', {}, missing) : [el('p', { class: 'figure' }, figure), facts(pairs)]);
}

const lookup = (name, value) => go('disputes', { [name]: value }, code(value));
const tokens = (value) => `${grouped(value)} ${text(value) === '1' ? 'token' : 'tokens'}`;

function chain(row) {
  const { frame, event, statement, placement, placements = [], invoice_line: line } = row;
  const others = placements.filter((other) => other.stripe_identifier !== placement?.stripe_identifier);
  return el('article', {},
    el('h2', {}, frame ? `${frame.provider_id} · ${frame.frame_id}` : `${event.provider_id}, no frame`,
      event.in_conflict ? [' ', badge('in conflict', 'bad')] : null),
    el('ol', { class: 'chain' },
      frame
        ? step('Frame', tokens(frame.tokens), [
          ['Provider', frame.provider_id], ['Frame', frame.frame_id], ['Place in the event', text(frame.position)],
          ['Content digest', code(frame.content_digest)], ['Commitment', code(frame.commitment)]])
        : step('Frame', null, null, 'The event counts tokens without naming frames.'),
      step('Usage event', tokens(event.tokens), [
        ['Event', lookup('event_id', event.event_id)], ['Customer', event.customer_id],
        ['Turn', go('disputes', { request_id: event.request_id, turn_id: event.turn_id }, `${event.request_id} / ${event.turn_id}`)],
        ['As of', time(event.as_of)], ['Frames', `${grouped(event.frames_served)} served, ${grouped(event.frames_rejected)} rejected`],
        ['Received', time(event.received_at)]]),
      statement
        ? step('Statement', `${grouped(statement.sum)} from ${grouped(statement.count)} ${text(statement.count) === '1' ? 'event' : 'events'}`, [
          ['Statement', lookup('statement_id', statement.statement_id)], ['Meter', statement.meter_id], ['Hour', time(statement.hour)],
          ['Revision', text(statement.revision)], ['Place in the log', grouped(statement.log_index)], ['Root', code(statement.root)]])
        : step('Statement', null, null, event.in_conflict ? 'Not counted: the turn was reported with two contents.' : 'In no statement yet: its hour is not sealed.'),
      placement
        ? step('Stripe event', grouped(placement.amount), [
          ['Identifier', lookup('stripe_identifier', placement.stripe_identifier)], ['Minute', time(placement.minute)], ['State', placement.state],
          ...others.map((other) => ['Also', [lookup('stripe_identifier', other.stripe_identifier), ` ${grouped(other.amount)}, ${other.state}`]])])
        : step('Stripe event', null, null, 'Nothing was reported to Stripe yet.'),
      line
        ? step('Invoice line', money(line.amount, line.currency), [
          ['Line', lookup('invoice_line', line.line_id)], ['Invoice', code(line.invoice_id)], ['Quantity', grouped(line.quantity)],
          ['From', time(line.period_start)], ['Until', time(line.period_end)]])
        : step('Invoice line', null, null, 'On no invoice yet.')),
    proof(row));
}

function proof({ proof: held, event, statement }) {
  if (!held) return el('p', { class: 'proof' }, 'There is no proof yet: it comes with the statement’s place under a signed head.');
  const verdict = held.verified ? badge('checked', 'good') : badge('does not check', 'bad');
  let way;
  try {
    const address = URL.createObjectURL(new Blob([JSON.stringify(held.file, null, 2), '\n'], { type: 'application/json' }));
    files.push(address);
    const name = `proof-${statement.statement_id}-${event.event_id}.json`;
    way = [el('a', { href: address, download: name }, 'Download the proof file'), ' and check it without this service: ',
      el('code', {}, `contextmeter proof verify ${name}`)];
  } catch (error) {
    way = error.message;
  }
  return el('p', { class: 'proof' }, verdict, ' ', way);
}

async function disputes(section, query, signal) {
  const handle = $$('[data-handle]', section).find((row) => $$('[data-query]', row).some((input) => query.has(input.dataset.query) && input.dataset.query !== 'provider_id'));
  if (handle) choose(section, handle.dataset.handle);
  forgetFiles();
  if (![...query.keys()].length) {
    $('[data-part=list]', section).replaceChildren();
    return 'Say what you have';
  }
  const { data } = await ask('/v1/disputes/lookup', query, signal);
  const events = new Set(data.map((row) => row.event.event_id));
  const bound = events.size >= MOST && !query.has('limit')
    ? [el('p', { class: 'hint' }, `These are the chains of ${MOST} events; there may be more. Look up a turn or an event to see its own.`)] : [];
  $('[data-part=list]', section).replaceChildren(...bound,
    ...(data.length ? data.map(chain) : [el('p', { class: 'empty' }, 'Nothing of your platform has this name.')]));
  return `${data.length} ${data.length === 1 ? 'chain' : 'chains'}`;
}

function choose(section, handle) {
  for (const radio of $$('input[name=handle]', section)) radio.checked = radio.value === handle;
  for (const row of $$('[data-handle]', section)) row.hidden = row.dataset.handle !== handle;
}

// --- From the address to the page -----------------------------------------------------------------------------------

let running = new AbortController();

function place() {
  const [view, query = ''] = location.hash.slice(1).split(/\?(.*)/s);
  const known = view === 'disputes' || Object.hasOwn(LISTS, view);
  return { view: known ? view : 'usage', query: new URLSearchParams(known ? query : '') };
}

function say(sentence) {
  $('#status').textContent = sentence;
}

async function show(focus) {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  const signedIn = sessionStorage.getItem(KEY) !== null;
  const { view, query } = place();
  const section = signedIn ? $(`#view-${view}`) : $('#sign-in');
  for (const other of $$('main > section')) other.hidden = other !== section;
  $('#nav').hidden = $('#sign-out').hidden = !signedIn;
  for (const link of $$('#nav a')) {
    if (link.hash === `#${view}`) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  const title = $('h1', section);
  document.title = `${title.textContent} – Contextmeter console`;
  if (focus) title.focus();
  if (!signedIn) return;

  for (const input of $$('[data-query]', section)) input.value = query.get(input.dataset.query) ?? '';
  $('[data-part=problem]', section).replaceChildren();
  section.setAttribute('aria-busy', 'true');
  say('Asking the service');
  try {
    say(await (view === 'disputes' ? disputes(section, query, signal) : list(section, view, query, signal)));
  } catch (error) {
    if (signal.aborted) return;
    say('');
    if (error instanceof Problem && error.members.status === 401) {
      signOut();
      showProblem($('#sign-in'), error);
      return;
    }
    for (const part of $$('[data-part=list], [data-part=total], [data-part=pages]', section)) part.replaceChildren();
    showProblem(section, error);
  }
  if (!signal.aborted) section.removeAttribute('aria-busy');
}

function signOut() {
  sessionStorage.removeItem(KEY);
  sessionStorage.removeItem(PLATFORM);
  forgetFiles();
  // What the key showed leaves the page with it.
  for (const part of $$('[data-part]')) part.replaceChildren();
  for (const input of $$('input[data-query]')) input.value = '';
  say('Signed out');
  show(true);
}

function signIn() {
  const [key, platform] = [$('#key'), $('#platform')];
  const value = key.value.trim();
  if (!/^[\x21-\x7e]+$/.test(value) || !/^[\x21-\x7e]*$/.test(platform.value.trim())) {
    showProblem($('#sign-in'), new Problem({ title: 'This is no key', detail: 'A key has letters, digits and underscores, as cm_test_… or cm_live_….' }));
    return;
  }
  sessionStorage.setItem(KEY, value);
  if (platform.value.trim()) sessionStorage.setItem(PLATFORM, platform.value.trim());
  key.value = platform.value = '';
  $('[data-part=problem]', $('#sign-in')).replaceChildren();
  show(true);
}

document.addEventListener('submit', (event) => {
  event.preventDefault();
  const form = event.target;
  if (form.dataset.form === 'sign-in') return signIn();
  const { view } = place();
  const query = new URLSearchParams();
  for (const input of $$('[data-query]', form)) {
    if (input.value.trim() && !input.closest('[hidden]')) query.set(input.dataset.query, input.value.trim());
  }
  const next = `#${view}${String(query) ? `?${query}` : ''}`;
  // The same question again is asked again.
  if (location.hash === next) show(false);
  else location.hash = next;
});
document.addEventListener('change', (event) => {
  if (event.target.name === 'handle') choose(event.target.closest('section'), event.target.value);
});
$('#sign-out').addEventListener('click', signOut);
addEventListener('hashchange', () => show(true));
show(false);
