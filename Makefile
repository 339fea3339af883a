# The front door. `make` alone lists what there is; anything with logic lives in scripts/.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.PHONY: help demo test peers bench soak lint fmt advisories bless

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  \1\t/' | expand -t 14

demo: ## the main job on the embedded default: one real turn from query to invoice line and back
	@scripts/setup.sh engine
	@cargo build --release --locked --package contextmeter
	@target/release/contextmeter demo $(ARGS)

test: ## format, lints, unit, integration and end-to-end tests, each with its minutes
	@scripts/test.sh

peers: ## published suites and clients against ours (the official client's own tests, clickhouse-connect, stripe)
	@scripts/setup.sh engine python
	@scripts/peers/run.sh

bench: ## ratios against named limits; writes docs/benchmarks.md
	@scripts/setup.sh engine
	@scripts/bench.sh

soak: ## long campaigns: histories from seeds, kill -9 in the middle, books balanced at the end
	@scripts/setup.sh engine postgres nextest
	@scripts/soak.sh

lint: ## rustfmt, clippy, cargo deny
	@scripts/setup.sh deny
	@scripts/lint.sh

fmt: ## format the code
	@cargo fmt --all

advisories: ## known vulnerabilities of the dependencies (needs a network)
	@scripts/setup.sh deny
	@scripts/with-tools.sh cargo deny check advisories

bless: ## accept changed golden files after looking at `git diff`
	@INSTA_UPDATE=always UPDATE_GOLDEN=1 scripts/with-tools.sh cargo nextest run --workspace
