# normlayers.h: `make` lists the targets. Using the header needs no make at all: cc app.c -lm

CC ?= cc
# No contraction: then every figure and table has the same bits on every machine. See README.
CFLAGS ?= -O3 -march=native
FLAGS := -std=c99 $(CFLAGS) -ffp-contract=off
WARNINGS := -Wall -Wextra -Wpedantic
PREFIX ?= /usr/local
DESTDIR ?=
BUILD ?= build
BUILD_FOLDER := $(BUILD)
FIGURES ?= $(BUILD_FOLDER)/figures
MNIST ?= data/mnist
MPICC ?= mpicc
EXAMPLE_FLAGS ?= # such as --quick
BENCH_FLAGS ?= # such as --only layernorm --rounds 5
VERSION := $(shell sed -n 's/^.define NRM_VERSION "\(.*\)"/\1/p' normlayers.h)

# make and the scripts split names at spaces: a folder with one in its name goes by a link.
unspaced = $(if $(word 2,$(1)),$(shell link=.link-$$(printf %s "$(1)" | cksum | cut -c1-6); \
	mkdir -p "$(1)" && ln -sfn "$(1)" $$link && echo $$link),$(1))
override BUILD := $(call unspaced,$(BUILD))

# stb_image_write.h: STB=/folder, or pkg-config, or where distributions put it
STB ?=
STB_CFLAGS := $(if $(STB),-isystem $(call unspaced,$(STB)),$(shell pkg-config --cflags stb \
	2>/dev/null || for prefix in /usr /usr/local /opt/homebrew /opt/local; do \
	echo -isystem $$prefix/include/stb; done))

# What the programs share: modules of their own, those of nrm_real once in float and once in double.
HELPERS := $(wildcard examples/*.h examples/lab/*.h examples/plot/*.h)
MODULES := $(wildcard examples/lab/*.c examples/plot/*.c)
OF_REAL := $(shell grep -l 'normlayers\.h' $(MODULES:.c=.h) 2>/dev/null)
OF_REAL := $(OF_REAL:examples/%.h=$(BUILD)/%)
LAB := $(filter-out $(OF_REAL:=.o),$(MODULES:examples/%.c=$(BUILD)/%.o))
PROGRAMS := $(sort $(basename $(notdir $(wildcard examples/[0-9]*.c examples/experiments/*/*.c))))
# The newcomer's pictures and the MNIST comparison; the others are `make reproduce`, and so are the
# runs of 34, which is drawn from its table on file.
SHORT := $(filter 0% 10_% 34_%,$(PROGRAMS))
EXPERIMENTS := $(filter-out 0%,$(PROGRAMS))
UNKNOWN := $(strip $(foreach n,$(ONLY),$(if $(filter $(n)_%,$(EXPERIMENTS)),,$(n))))
$(if $(UNKNOWN),$(error there is no experiment $(UNKNOWN); the experiments are: $(EXPERIMENTS)))
WANTED := $(if $(ONLY),$(foreach n,$(ONLY),$(filter $(n)_%,$(EXPERIMENTS))),$(EXPERIMENTS))
EXAMPLES := $(addprefix $(BUILD)/,$(PROGRAMS))
OBJECTS := $(BUILD)/lab.a

.PHONY: help deps deps-dev deps-peers figures test mnist examples strict sanitize determinism lint \
	bench bench-peers bench-quick bench-docs bench-mnist check install uninstall clean
.DELETE_ON_ERROR:

help:
	@echo "normlayers.h $(VERSION). To use it, copy that file: docs/packaging.md. To see it work:"
	@echo
	@echo "  make deps figures   draw the main figures into build/figures; about 5 minutes"
	@echo "  make deps test      check every equation, contract and file format; about a minute"
	@awk -F ':.*## ' '/^### / { print "\n" substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-15s%s\n", $$1, $$2 }' Makefile

### Install what is needed here
deps: ## what figures and tests need (stb_image_write.h); STB=/folder that has it
	@STB="$(STB)" sh examples/deps.sh figures

deps-dev: ## what the whole check matrix needs too: g++, clang, Node, CMake, Rust, ...
	@STB="$(STB)" sh examples/deps.sh dev

deps-peers: ## what bench-peers and bench-mnist compare with (PyTorch, oneDNN, OpenBLAS)
	@STB="$(STB)" sh examples/deps.sh peers

mnist: ## download MNIST to data/mnist (MNIST_URL= names another mirror)
	@sh examples/fetch_mnist.sh "$(MNIST)"

### Figures and experiments
examples: $(addprefix $(BUILD)/,$(SHORT)) ## compile the short examples to build/

.PHONY: uses
USES := $(patsubst examples/%,$(BUILD)/%,$(basename $(wildcard examples/uses/*.c*)))
uses: $(USES) ## compile and run the small programs of examples/uses, one for each use
	@for program in $(USES); do echo "== $${program##*/}"; \
		$$program "$(BUILD)/uses" || exit 1; done

figures: examples ## draw their figures into build/figures (FIGURES= another folder)
	@for program in $(filter-out 01_hello_layernorm 06_from_pytorch,$(SHORT)); do \
		case $$program in 0*) from= ;; 10_*) from="--runs $(BUILD)/runs" ;; \
		*) from="--from examples/experiments/$$program/$$program.csv" ;; esac; \
		echo "== $$program"; \
		$(BUILD)/$$program --out "$(FIGURES)" $$from $(EXAMPLE_FLAGS) || exit 1; done
	@echo "The figures are in $(FIGURES)"

.PHONY: experiments reproduce reproduce-docs redraw
experiments: $(addprefix $(BUILD)/,$(WANTED) verdicts) ## compile all experiments to build/

# ONLY="16 17": these alone; QUICK=1: a smoke pass; JOBS=2: runs at a time. exec: a shell in between
# would keep a signal to make from the script.
reproduce: experiments ## run all experiments, draw and judge them into build/reproduce
	@exec env BUILD="$(BUILD)" ONLY="$(ONLY)" QUICK="$(QUICK)" JOBS="$(or $(JOBS),2)" \
		sh examples/experiments/reproduce.sh $(EXPERIMENTS)

reproduce-docs: reproduce ## the same, then tables, figures and verdicts into examples/experiments
	@BUILD="$(BUILD)" ONLY="$(ONLY)" QUICK="$(QUICK)" \
		sh examples/experiments/reproduce.sh --publish $(EXPERIMENTS)

# From nothing, in a folder of its own. QUICK=1: the quick pass on the synthetic digits, whose
# checksums are on file. UNDER=qemu-aarch64 CC=...: programs of another processor.
.PHONY: replicate
REPLICATE = BUILD="$(BUILD)/replicate" QUICK="$(QUICK)"
replicate: ## run all from nothing: are tables and verdicts those on file? With a report
	@rm -rf "$(BUILD)/replicate" && start=$$(date +%s) && \
		$(if $(QUICK),MNIST_DIR=synthetic) $(MAKE) --no-print-directory $(REPLICATE) reproduce && \
		$(REPLICATE) sh examples/experiments/replicate.sh $$(($$(date +%s) - start)) $(WANTED)

redraw: experiments ## figures and verdicts from the tables on file, without a run
	@BUILD="$(BUILD)" ONLY="$(ONLY)" sh examples/experiments/reproduce.sh --redraw $(EXPERIMENTS)

.PHONY: mpi
mpi: $(OBJECTS) ## compile the example with several workers, if there is MPI
	@command -v $(MPICC) >/dev/null || { echo "mpi: no $(MPICC) here; 'make deps-dev' installs" \
		"Open MPI where the package manager has it, MPICC= names another compiler"; exit 1; }
	@$(MAKE) --no-print-directory BUILD="$(BUILD)" $(BUILD)/mpi_batchnorm

### Checks
test: ## run the fast tests
	@CC="$(CC)" BUILD="$(BUILD)" STB_CFLAGS="$(STB_CFLAGS)" sh tests/run.sh

strict: ## compile under all warnings, compilers and language standards
	@sh tests/compile/strict.sh && for part in run symbols macros; do \
		sh tests/compile/$$part.sh || exit 1; done

sanitize: ## run the tests under sanitizers of gcc and clang, and valgrind (SAMPLE=1)
	@CC="$(CC)" BUILD="$(BUILD)" STB_CFLAGS="$(STB_CFLAGS)" sh tests/analyse/sanitize.sh \
		$(if $(SAMPLE),--sample)

.PHONY: analysers
analysers: ## static analysers of gcc and clang (SAMPLE=1)
	@python3 tests/analyse/analysers.py $(if $(SAMPLE),--sample)

determinism: ## compare the bits of all compilers and optimisation levels
	@sh tests/bits/determinism.sh && sh tests/bits/same_row.sh

.PHONY: matrix matrix-docs
matrix: ## the tests on other compilers and systems (TARGETS="tcc musl", SAMPLE=1)
	@BUILD="$(BUILD)" python3 tests/matrix/matrix.py $(if $(SAMPLE),--sample) $(TARGETS)

matrix-docs: ## the same, and the table into docs/determinism.md
	@BUILD="$(BUILD)" python3 tests/matrix/matrix.py --docs

lint: ## check the texts: characters, tags, formulas, symbols, links, code blocks
	@CC="$(CC)" BUILD="$(BUILD)" STB_CFLAGS="$(STB_CFLAGS)" sh tests/run.sh lint

.PHONY: accuracy accuracy-docs
accuracy: $(OBJECTS) ## errors of the norms against the exact result, and their bounds
	@CC="$(CC)" BUILD="$(BUILD)" FLAGS="$(FLAGS)" sh tests/accuracy/accuracy.sh

accuracy-docs: $(OBJECTS) ## the same, then figure and tables into docs/
	@CC="$(CC)" BUILD="$(BUILD)" FLAGS="$(FLAGS)" sh tests/accuracy/accuracy.sh docs

.PHONY: exhaustive
EVERY ?= 1
exhaustive: ## are exp, log, tanh, sigmoid of all floats right? EVERY=997: of some
	@mkdir -p "$(BUILD)" && $(CC) $(FLAGS) $(WARNINGS) -I. tests/accuracy/exhaustive.c \
		-o "$(BUILD)/exhaustive" -lmpfr -lgmp -lm && "$(BUILD)/exhaustive" $(EVERY)

.PHONY: random
random: ## the random numbers under the tests of dieharder
	@CC="$(CC)" sh tests/layers/dieharder.sh

.PHONY: equations equations-docs
equations: ## every equation with its checks, and how far its two sides are apart
	@CC="$(CC)" BUILD="$(BUILD)" sh tests/equations/equations.sh

equations-docs: ## the same, into docs/equations.md
	@CC="$(CC)" BUILD="$(BUILD)" sh tests/equations/equations.sh docs

.PHONY: plain tagged cortex
plain: ## run the tests of the layers with NRM_PLAIN
	@CC="$(CC)" BUILD="$(BUILD)" STB_CFLAGS="$(STB_CFLAGS)" sh tests/run.sh plain

tagged: ## does every line of C that carries an equation's tag run? (gcc, gcov)
	@BUILD="$(BUILD)" sh tests/equations/coverage_tags.sh

cortex: ## bytes and stack of a layer on Cortex-M0+, Cortex-M4 and RISC-V 32
	@BUILD="$(BUILD)" sh tests/compile/cortex.sh

.PHONY: analyse
analyse: ## follow all runs of every public function at small sizes (Frama-C): no alarm?
	@sh tests/analyse/analyse.sh

.PHONY: coverage fuzz
coverage: ## are all lines and branches of normlayers.h and npz.h reached? (clang 18)
	@python3 tests/coverage/coverage.py "$(BUILD)/coverage"

# SECONDS=300: so long for each target; FUZZ="mlp npz": only these.
fuzz: ## hostile files, networks and calls, from tests/fuzz/corpus on (libFuzzer)
	@BUILD="$(BUILD)" SECONDS_EACH="$(or $(SECONDS),20)" sh tests/fuzz/fuzz.sh $(FUZZ)

.PHONY: mutants mutants-docs
mutants: ## edit the formulas of the header, one at a time: which check finds it?
	@CC="$(CC)" BUILD="$(BUILD)" sh tests/mutants/run.sh

mutants-docs: ## the same, and record who found it
	@CC="$(CC)" BUILD="$(BUILD)" sh tests/mutants/run.sh --write

.PHONY: prove prove-mutants proofs-docs
prove: ## check the theorems of tests/proofs with Coq, and the wrong statements
	@CC="$(CC)" BUILD="$(BUILD)" JOBS="$(or $(JOBS),2)" sh tests/proofs/prove.sh all

prove-mutants: ## the wrong statements alone
	@BUILD="$(BUILD)" JOBS="$(or $(JOBS),2)" sh tests/proofs/prove.sh mutants

proofs-docs: ## the table of docs/how_we_know.md anew
	@sh tests/proofs/how_we_know.sh docs

.PHONY: parity
parity: ## every layer beside PyTorch, where it is installed (SEED= of the data)
	@CC="$(CC)" BUILD="$(BUILD)" SEED="$(or $(SEED),1)" sh tests/parity/parity.sh

.PHONY: packaging
packaging: ## build a small project in each way of docs/packaging.md that can run here
	@CC="$(CC)" CXX="$(CXX)" sh tests/compile/packaging.sh

check: test strict sanitize plain equations tagged cortex mutants prove book-check determinism
check: coverage accuracy exhaustive parity packaging matrix analysers ## all of it
	@sh tests/lint/tags.sh --faults && sh tests/files/files.sh && sh tests/system/mpi.sh

### Texts
.PHONY: ascii
ascii: ## the header without a character beyond ASCII, in build/ascii
	@mkdir -p $(BUILD)/ascii
	@LC_ALL=C awk -f docs/weave/ascii.awk normlayers.h >$(BUILD)/ascii/normlayers.tmp
	@mv $(BUILD)/ascii/normlayers.tmp $(BUILD)/ascii/normlayers.h
	@echo "$(BUILD)/ascii/normlayers.h compiles to the same program"

.PHONY: drawings drawings-check
drawings: ## draw the SVGs of the chapters, docs/drawings (needs Node)
	@node docs/drawings/draw.mjs

drawings-check: ## are they what the program draws, and no text on another?
	@node docs/drawings/draw.mjs --check

.PHONY: explore explore-check
explore: ## the page where one moves the numbers: build/explore (clang, lld, Node)
	@CC="$(CC)" BUILD="$(BUILD)" sh docs/explore/explore.sh

explore-check: ## the same, tested in Node and in Chromium
	@CC="$(CC)" BUILD="$(BUILD)" sh docs/explore/explore.sh check

.PHONY: book book-check book-look pdf
book: ## weave header and chapters into build/book (needs Node)
	@BUILD="$(BUILD)" sh docs/weave/book.sh

book-check: ## weave it twice: the same bytes? And look at the pages in Chromium
	@BUILD="$(BUILD)" sh docs/weave/book.sh check

pdf: ## print the whole book into build/book.pdf (Chromium)
	@BUILD="$(BUILD)" sh docs/weave/book.sh pdf

book-look: ## photograph its pages in Chromium into build/look
	@BUILD="$(BUILD)" sh docs/weave/book.sh look

.PHONY: bindings api-docs
bindings: $(BUILD)/normlayers_pic.o ## the library for Python (ctypes) and Rust, into build/
	@$(CC) -shared $< -o $(BUILD)/libnormlayers.so -lm
	@python3 tests/bindings/generate.py python <docs/api.json >$(BUILD)/normlayers.py
	@python3 tests/bindings/generate.py rust <docs/api.json >$(BUILD)/normlayers.rs
	@echo "$(BUILD)/normlayers.py and libnormlayers.so; normlayers.rs and normlayers_pic.o"

api-docs: ## the declarations as JSON, into docs/api.json
	@LC_ALL=C awk -f tests/bindings/api.awk normlayers.h >docs/api.json.tmp
	@mv docs/api.json.tmp docs/api.json

.PHONY: tables-docs
tables-docs: ## compute the tables of worked examples, invariances and museum in docs/ anew
	@CC="$(CC)" BUILD="$(BUILD)" sh tests/pages/tables.sh

### Speed
bench: ## time every layer beside plain loops and the one-pass limit
	@CC="$(CC)" BUILD="$(BUILD)" STB_CFLAGS="$(STB_CFLAGS)" sh tests/bench/layers.sh $(BENCH_FLAGS)

bench-peers: ## the same beside PyTorch and oneDNN, where they are installed
	@CC="$(CC)" CXX="$(CXX)" BUILD="$(BUILD)" STB_CFLAGS="$(STB_CFLAGS)" PEERS=1 \
		sh tests/bench/layers.sh $(BENCH_FLAGS)

bench-quick: ## a pass of a few seconds that checks all results and times nothing well
	@CC="$(CC)" BUILD="$(BUILD)" STB_CFLAGS="$(STB_CFLAGS)" sh tests/bench/layers.sh --quick \
		$(BENCH_FLAGS)

bench-docs: bench-peers ## the same, into docs/performance.md and docs/figures
	@BUILD="$(BUILD)" sh tests/bench/docs.sh

bench-mnist: $(OBJECTS) ## time an MNIST epoch, beside PyTorch where it is installed
	@CC="$(CC)" BUILD="$(BUILD)" sh tests/bench/mnist.sh "$(MNIST)"

### Install and release
TO := $(DESTDIR)$(PREFIX)
CMAKE_FILES := normlayers-config.cmake normlayers-config-version.cmake
install: ## copy header, normlayers.pc and the files for CMake below PREFIX
	install -d "$(TO)/include" "$(TO)/share/pkgconfig" "$(TO)/share/cmake/normlayers"
	install -m 644 normlayers.h "$(TO)/include"
	install -m 644 $(CMAKE_FILES:%=docs/packaging/%) "$(TO)/share/cmake/normlayers"
	sed 's/@VERSION@/$(VERSION)/' docs/packaging/normlayers.pc.in \
		>"$(TO)/share/pkgconfig/normlayers.pc"
	chmod 644 "$(TO)/share/pkgconfig/normlayers.pc"

uninstall: ## remove what install has put there
	rm -f "$(TO)/include/normlayers.h" "$(TO)/share/pkgconfig/normlayers.pc"
	rm -rf "$(TO)/share/cmake/normlayers"

.PHONY: dist
DIST = $(BUILD)/dist/normlayers-$(VERSION)
dist: ## header, tarball, book, PDF, explorable page, SHA256SUMS, in build/dist
	@git diff --quiet HEAD -- || { echo "dist: commit your changes first: a release is a commit"; \
		exit 1; }
	@rm -rf $(BUILD)/dist && mkdir -p $(BUILD)/dist && cp normlayers.h $(DIST).h
	@git archive --prefix=normlayers-$(VERSION)/ HEAD | gzip -9n >$(DIST).tar.gz
	@CC="$(CC)" BUILD="$(BUILD)" sh docs/explore/explore.sh
	@CC="$(CC)" BUILD="$(BUILD)" sh docs/weave/book.sh pdf
	@cp $(BUILD)/book.pdf $(DIST)-book.pdf && cp $(BUILD)/explore/explore.html $(DIST)-explore.html
	@tar -cf - -C $(BUILD) book | gzip -9n >$(DIST)-book.tar.gz
	@cd $(BUILD)/dist && { sha256sum normlayers-* 2>/dev/null || shasum -a 256 normlayers-*; } \
		>SHA256SUMS && ls -l && cat SHA256SUMS

clean: ## remove build/ (not data/)
	rm -rf "$(BUILD_FOLDER)" .link-*

$(BUILD):
	@mkdir -p $@

# Another compiler or other flags make other programs: this file is new when they are.
COMPILED_BY := $(CC) $(FLAGS)
.PHONY: always
always:
$(BUILD)/compiled_by: always | $(BUILD)
	@printf '%s\n' '$(COMPILED_BY)' | cmp -s - $@ || printf '%s\n' '$(COMPILED_BY)' >$@

$(BUILD)/plot/stb_image_write.o: QUIET = -w
$(LAB): $(BUILD)/%.o: examples/%.c $(HELPERS) $(BUILD)/compiled_by
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(WARNINGS) $(QUIET) -Iexamples $(STB_CFLAGS) '-DBUILD_FLAGS="$(FLAGS)"' -c $< \
		-o $@

$(BUILD)/lab.a: $(LAB)
	@rm -f $@ && $(AR) rc $@ $^ && ranlib $@

$(OF_REAL:=.o): $(BUILD)/%.o: examples/%.c normlayers.h $(HELPERS) $(BUILD)/compiled_by
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(WARNINGS) -I. -Iexamples -c $< -o $@

$(OF_REAL:=_f64.o): $(BUILD)/%_f64.o: examples/%.c normlayers.h $(HELPERS) $(BUILD)/compiled_by
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(WARNINGS) -DNRM_DOUBLE -I. -Iexamples -c $< -o $@

# Each example would compile the header for itself; they share one copy of its functions in float,
# and one in double. Without errno square roots need no branch, so Adam's loop is done in vectors:
# the same bits, sooner.
HEADER_OBJECTS := $(addprefix $(BUILD)/,normlayers.o normlayers_f64.o normlayers_pic.o)
$(HEADER_OBJECTS): FLAGS += -fno-math-errno
$(BUILD)/normlayers_f64.o: FLAGS += -DNRM_DOUBLE
$(BUILD)/normlayers_pic.o: FLAGS += -fPIC
$(HEADER_OBJECTS): normlayers.h $(BUILD)/compiled_by
	$(CC) $(FLAGS) $(WARNINGS) -DNORMLAYERS_IMPLEMENTATION -x c -c $< -o $@

IN_DOUBLE := $(addprefix $(BUILD)/,$(basename $(notdir $(shell grep -l NRM_DOUBLE \
	examples/[0-9]*.c examples/experiments/*/*.c)))) \
	$(patsubst examples/%.c,$(BUILD)/%,$(shell grep -l NRM_DOUBLE examples/uses/*.c))
IN_FLOAT := $(filter-out $(IN_DOUBLE) $(BUILD)/uses/small_processor,$(EXAMPLES) $(USES))
$(IN_FLOAT): REAL = $(BUILD)/normlayers.o
$(IN_FLOAT): $(BUILD)/normlayers.o
$(IN_DOUBLE): REAL = $(BUILD)/normlayers_f64.o
$(IN_DOUBLE): $(BUILD)/normlayers_f64.o
# What a program links with, in its precision.
LINKED = $(if $(findstring _f64,$(REAL)),$(OF_REAL:=_f64.o),$(OF_REAL:=.o)) $(REAL) $(OBJECTS)

.SECONDEXPANSION:
$(EXAMPLES): $(BUILD)/%: $$(wildcard examples/$$*.c examples/experiments/$$*/$$*.c) normlayers.h \
		$(HELPERS) $(OBJECTS) $(OF_REAL:=.o) $(OF_REAL:=_f64.o)
	$(CC) $(FLAGS) $(WARNINGS) -DNRM_IMPLEMENTED -I. -Iexamples $< $(LINKED) -o $@ -lm

$(BUILD)/verdicts: examples/experiments/verdicts.c $(HELPERS) $(OBJECTS)
	$(CC) $(FLAGS) $(WARNINGS) -Iexamples $< $(OBJECTS) -o $@ -lm

$(BUILD)/uses/%: examples/uses/%.c normlayers.h examples/npz.h $(BUILD)/compiled_by
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(WARNINGS) $(if $(REAL),-DNRM_IMPLEMENTED) -I. $< $(REAL) -o $@ -lm

$(BUILD)/uses/%: examples/uses/%.cpp normlayers.h $(BUILD)/compiled_by
	@mkdir -p $(@D)
	$(CXX) -std=c++11 $(CFLAGS) -ffp-contract=off $(WARNINGS) -DNRM_IMPLEMENTED -I. $< $(REAL) -o $@

# The same file twice: in float, and in double without the part that draws.
$(BUILD)/mpi_batchnorm: export OMPI_CC = $(CC)
$(BUILD)/mpi_batchnorm: export MPICH_CC = $(CC)
$(BUILD)/mpi_batchnorm: examples/mpi_batchnorm.c normlayers.h $(HELPERS) $(OBJECTS) \
		$(BUILD)/lab/training.o $(BUILD)/lab/training_f64.o
	$(MPICC) $(FLAGS) $(WARNINGS) -I. -Iexamples -DNRM_DOUBLE -c $< -o $@_f64.o
	$(MPICC) $(FLAGS) $(WARNINGS) -I. -Iexamples $< $@_f64.o $(BUILD)/lab/training.o \
		$(BUILD)/lab/training_f64.o $(OBJECTS) -o $@ -lm
