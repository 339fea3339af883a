use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use contextgraph_types::{
    Capabilities, ContextQuery, ContextQueryResult, FrameKind, Provenance, QueryCapability,
};
use usage::ProviderId;

use super::rank::{Page, best, sha256};
use crate::{Provider, ProviderError};

/// A folder of Markdown pages, read when it is opened: one frame of kind `doc` for each section.
///
/// A section is a heading with what follows it up to the next heading of any level; its frame id is `page.md#heading-in-lower-case`, its
/// content the Markdown as it stands, its digest the SHA-256 of that content, its cost the protocol's count (a token for each four
/// bytes begun). Pages below hidden folders and symbolic links are left out.
#[derive(Debug, Clone)]
pub struct DocsProvider {
    id: ProviderId,
    sections: Vec<Page>,
}

/// Why a folder of pages could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum DocsError {
    #[error("failed to read {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} has {bytes} bytes, more than the {max} of a page")]
    PageTooLarge { path: PathBuf, bytes: u64, max: u64 },
    #[error("{path} has more than {max} pages")]
    TooManyPages { path: PathBuf, max: usize },
    #[error("{path} is not named in UTF-8, so no frame id can name it")]
    Name { path: PathBuf },
    #[error("{path} has no Markdown page")]
    Empty { path: PathBuf },
    #[error("the id is not usable")]
    Id(#[from] usage::IdError),
}

const PAGE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const PAGES_MAX: usize = 10_000;

impl DocsProvider {
    /// Opens it as provider `docs`.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, DocsError> {
        Self::open_as(ProviderId::parse("docs")?, folder)
    }

    pub fn open_as(id: ProviderId, folder: impl AsRef<Path>) -> Result<Self, DocsError> {
        let folder = folder.as_ref();
        let mut pages = Vec::new();
        find(folder, folder, &mut pages)?;
        if pages.is_empty() {
            return Err(DocsError::Empty { path: folder.to_owned() });
        }
        pages.sort(); // by name, so that every reading of a folder gives the same frames
        let mut sections = Vec::new();
        for (name, path) in pages {
            let text = read(&path)?;
            let digest = sha256(text.as_bytes());
            sections.extend(page(&name, &text, &digest));
        }
        Ok(Self { id, sections })
    }

    pub fn sections_count(&self) -> usize {
        self.sections.len()
    }
}

#[async_trait]
impl Provider for DocsProvider {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { query: QueryCapability { kinds: vec!["doc".to_owned()] }, ..Capabilities::default() }
    }

    async fn query(&self, query: &ContextQuery) -> Result<ContextQueryResult, ProviderError> {
        Ok(best(&self.sections, query))
    }
}

/// Adds the pages below a folder, each with its name: the path from the root with `/` between.
fn find(root: &Path, folder: &Path, pages: &mut Vec<(String, PathBuf)>) -> Result<(), DocsError> {
    let failed = |source| DocsError::Read { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if kind.is_dir() {
            find(root, &path, pages)?;
        } else if kind.is_file() && path.extension().is_some_and(|end| end.eq_ignore_ascii_case("md")) {
            let parts: Option<Vec<_>> = path
                .strip_prefix(root)
                .ok()
                .and_then(|below| below.iter().map(|part| part.to_str()).collect());
            let Some(parts) = parts else { return Err(DocsError::Name { path }) };
            pages.push((parts.join("/"), path));
            if pages.len() > PAGES_MAX {
                return Err(DocsError::TooManyPages { path: root.to_owned(), max: PAGES_MAX });
            }
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, DocsError> {
    let failed = |source| DocsError::Read { path: path.to_owned(), source };
    let bytes = fs::metadata(path).map_err(failed)?.len();
    if bytes > PAGE_BYTES_MAX {
        return Err(DocsError::PageTooLarge { path: path.to_owned(), bytes, max: PAGE_BYTES_MAX });
    }
    fs::read_to_string(path).map_err(failed)
}

/// Cuts a page into its sections. What stands before the first heading is a section under the page's name.
fn page(name: &str, text: &str, file_digest: &str) -> Vec<Page> {
    let mut sections: Vec<(String, usize)> = vec![(name.to_owned(), 0)];
    let mut ends = Vec::new();
    let mut fence: Option<&str> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        match fence {
            Some(mark) if bare.starts_with(mark) => fence = None,
            Some(_) => {}
            None => {
                fence = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
                if let Some(title) = heading(line) {
                    ends.push(at);
                    sections.push((title, at));
                }
            }
        }
        at += line.len();
    }
    ends.push(text.len());

    let mut used = HashSet::new();
    let mut pages = Vec::new();
    for ((title, start), end) in sections.into_iter().zip(ends) {
        let content = text.get(start..end).unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        let anchor = anchor(&title, &mut used);
        let id = if start == 0 && title == name { name.to_owned() } else { format!("{name}#{anchor}") };
        let citation = format!("{name}, {title}");
        let mut page = Page::new(id.clone(), FrameKind::Doc, &title, citation, content.to_owned());
        page.frame_mut().uri = Some(id);
        page.frame_mut().provenance = vec![Provenance {
            kind: "file".to_owned(),
            uri: Some(name.to_owned()),
            range: Some(format!("bytes={start}-{end}")),
            digest: Some(file_digest.to_owned()),
            method: None,
            by: None,
        }];
        pages.push(page);
    }
    pages
}

/// The text of a heading of the form `# …` to `###### …`.
fn heading(line: &str) -> Option<String> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    if !(1..=6).contains(&level) || !rest.starts_with([' ', '\t']) {
        return None;
    }
    let title = rest.trim().trim_end_matches('#').trim();
    (!title.is_empty()).then(|| title.to_owned())
}

/// The heading as a link would name it, with a number where the page has it already.
fn anchor(title: &str, used: &mut HashSet<String>) -> String {
    let slug = slug(title);
    let numbered = (2..).map(|number: u32| format!("{slug}-{number}"));
    let free = std::iter::once(slug.clone()).chain(numbered).find(|anchor| !used.contains(anchor));
    let anchor = free.unwrap_or(slug);
    used.insert(anchor.clone());
    anchor
}

fn slug(title: &str) -> String {
    let kept: String =
        title.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    let slug = kept.split_whitespace().collect::<Vec<_>>().join("-");
    // A frame id is bounded, and so is what a heading adds to it.
    let short: String = slug.chars().take(80).collect();
    if short.is_empty() { "section".to_owned() } else { short }
}
