# Lockstep: plain `make` builds build/lockstep; `make help` lists the rest.
#
# Variants build into folders of their own, so that they never mix:
#   make SANITIZE=address,undefined    build/asan...   make SANITIZE=thread    build/tsan...
#   make CC=clang BUILD=build/clang    make FAIL_POINTS=1    build/faults, for tests/faults
VERSION := 0.1.0
PREFIX ?= /usr/local
CC ?= cc
ifeq ($(origin CC),default)
CC := gcc
endif

comma := ,
SANITIZE ?=
FAIL_POINTS ?=
BUILD ?= build$(if $(FAIL_POINTS),/faults)$(if $(SANITIZE),/$(subst $(comma),-,$(SANITIZE)))

LIBRARIES := jansson libxxhash nettle hwloc
# Ranks in several processes: Open MPI, or MPICH. MPI= (nothing) builds without.
MPI ?= $(firstword $(foreach package,ompi-c mpich,$(if $(shell pkg-config --exists $(package) && echo yes),$(package))))
ifneq ($(MPI),)
CPPFLAGS += -DLS_HAVE_MPI $(patsubst -I%,-isystem %,$(shell pkg-config --cflags-only-I $(MPI)))
LDLIBS += $(shell pkg-config --libs $(MPI))
endif
CPPFLAGS += -D_GNU_SOURCE -Iinclude -Isrc -DLS_VERSION='"$(VERSION)"' \
            $(shell pkg-config --cflags $(LIBRARIES))
WARNINGS := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Werror
# Fail points of the fault tests (base/fail_point.h): never in what is installed. Only the sources that have some
# are compiled again for them; all other objects are those of the build without.
FAIL_POINT_SOURCES := $(if $(FAIL_POINTS),$(shell grep -lE '"(base/fail_point|engine/faults)\.h"' src/*/*.c src/*/*/*.c))
PLAIN_BUILD := $(if $(FAIL_POINTS),$(patsubst build/faults%,build%,$(BUILD)),$(BUILD))
# Contraction off: a multiply and an add are fused only where the source says so.
NUMERIC := -ffp-contract=off -fno-math-errno -fno-trapping-math
# Under the sanitizers -O1: at -O3 the tiles of the products alone take a minute to compile. GCC then takes
# their checks for bounds of a text that snprintf might cut.
CFLAGS ?= $(if $(SANITIZE),-O1 -g1,-O2 -g)
KERNEL_CFLAGS := $(if $(SANITIZE),,-O3)
ALL_CFLAGS = -std=c17 $(CFLAGS) $(WARNINGS) $(NUMERIC) -fPIC -fvisibility=hidden -pthread \
             $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer \
               -Wno-unknown-warning-option -Wno-format-truncation)
LDLIBS += $(shell pkg-config --libs $(LIBRARIES)) -pthread -lm
LDFLAGS += $(if $(SANITIZE),-fsanitize=$(SANITIZE))

# src/kernels/*.c is compiled once for each instruction set; kernels/dispatch/ once.
ISAS := ref avx2 avx512
ISA_FLAGS_ref := -DLS_ISA_REF
ISA_FLAGS_avx2 := -DLS_ISA_AVX2 -mavx2 -mfma
ISA_FLAGS_avx512 := -DLS_ISA_AVX512 -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl \
                    -mprefer-vector-width=512

KERNEL_SOURCES := $(wildcard src/kernels/*.c)
CLI_SOURCES := $(wildcard src/cli/*.c src/launch/*.c src/compare/*.c)
LIBRARY_SOURCES := $(filter-out $(KERNEL_SOURCES) $(CLI_SOURCES) $(if $(MPI),,src/comm/mpi/%), \
                     $(wildcard src/*/*.c src/*/*/*.c))
KERNEL_OBJECTS := $(foreach isa,$(ISAS),$(KERNEL_SOURCES:src/%.c=$(PLAIN_BUILD)/obj/$(isa)/%.o))
LIBRARY_OBJECTS := $(patsubst src/%.c,$(PLAIN_BUILD)/obj/%.o,$(filter-out $(FAIL_POINT_SOURCES),$(LIBRARY_SOURCES))) \
                   $(FAIL_POINT_SOURCES:src/%.c=$(BUILD)/obj/%.o) $(KERNEL_OBJECTS)
# The page of `lockstep compare`, Chart.js included, is part of the program.
REPORT := src/compare/report
CHART_JS ?= /usr/share/javascript/chart.js/chart.min.js
REPORT_FILES := $(REPORT)/template.html $(REPORT)/report.css $(REPORT)/report.js $(CHART_JS)
CLI_OBJECTS := $(CLI_SOURCES:src/%.c=$(PLAIN_BUILD)/obj/%.o) $(PLAIN_BUILD)/obj/compare/report_assets.o

TEST_SOURCES := $(wildcard tests/unit/*/test_*.c)
SUPPORT_OBJECTS := $(patsubst tests/support/%.c,$(BUILD)/test-support/%.o,$(wildcard tests/support/*.c))
TEST_PROGRAMS := $(TEST_SOURCES:tests/unit/%.c=$(BUILD)/tests/%)
PEER_PROGRAMS := $(patsubst tests/peers/%.c,$(BUILD)/peers/%,$(wildcard tests/peers/*.c))
FUZZ_SOURCES := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_PROGRAMS := $(FUZZ_SOURCES:tests/fuzz/%.c=$(BUILD)/fuzz/%)

.PHONY: all tests test peers bench bench-gemm fuzz lint format format-check install clean help
.SECONDARY:

all: $(BUILD)/lockstep $(BUILD)/liblockstep.so

help:
	@echo 'make            the program and the libraries, in $(BUILD)/'
	@echo 'make tests      the test programs        make test     run them under ctest'
	@echo 'make fuzz       the fuzz targets (clang) make bench    against PyTorch, oneDNN, OpenBLAS'
	@echo 'make lint       includes, sizes, allocations, words    make format   clang-format'
	@echo 'make install    into PREFIX=$(PREFIX) (DESTDIR is honoured)'
	@echo 'SANITIZE=address,undefined or SANITIZE=thread builds a variant'

$(BUILD)/lockstep: $(CLI_OBJECTS) $(BUILD)/liblockstep.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/liblockstep.a: $(LIBRARY_OBJECTS)
	rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/liblockstep.so: $(LIBRARY_OBJECTS)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,liblockstep.so.0 -o $@ $^ $(LDLIBS)

define kernel_rule
$(PLAIN_BUILD)/obj/$(1)/%.o: src/%.c Makefile
	@mkdir -p $$(@D)
	$$(CC) $$(CPPFLAGS) $$(ALL_CFLAGS) $$(KERNEL_CFLAGS) $$(ISA_FLAGS_$(1)) -MMD -MP -c -o $$@ $$<
endef
$(foreach isa,$(ISAS),$(eval $(call kernel_rule,$(isa))))

FAIL_POINTS_DEFINED := $(if $(FAIL_POINTS),-DLS_FAIL_POINTS)
$(PLAIN_BUILD)/obj/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(if $(filter $(BUILD),$(PLAIN_BUILD)),$(FAIL_POINTS_DEFINED)) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

ifneq ($(PLAIN_BUILD),$(BUILD))
$(BUILD)/obj/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(FAIL_POINTS_DEFINED) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
endif

$(PLAIN_BUILD)/obj/compare/report_assets.o: src/compare/report_assets.S $(REPORT_FILES) Makefile
	@mkdir -p $(@D)
	$(CC) -DLS_REPORT_TEMPLATE=$(REPORT)/template.html -DLS_REPORT_STYLE=$(REPORT)/report.css \
	    -DLS_REPORT_SCRIPT=$(REPORT)/report.js -DLS_REPORT_CHART=$(CHART_JS) -c -o $@ $<

# --- tests -------------------------------------------------------------------------------------
TEST_CPPFLAGS := -Itests/support -DLS_TEST_SOURCE='"$(CURDIR)"' -DLS_TEST_BUILD='"$(CURDIR)/$(BUILD)"'

# What tests/unit/cli looks at: the program without its main.
$(BUILD)/cli.a: $(filter-out %/main.o,$(CLI_OBJECTS))
	rm -f $@
	$(AR) rcs $@ $^

# Compiled once, not for each program; folders of their own, as the programs have no ending.
$(BUILD)/test-support/%.o: tests/support/%.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TEST_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tests/%: tests/unit/%.c $(SUPPORT_OBJECTS) $(BUILD)/cli.a $(BUILD)/liblockstep.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TEST_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -MF $@.d $(LDFLAGS) -o $@ $< \
	    $(SUPPORT_OBJECTS) $(BUILD)/cli.a $(BUILD)/liblockstep.a -lcmocka $(LDLIBS)

# With the benchmark's program, which nothing else compiles: what it calls may have changed.
tests: $(TEST_PROGRAMS) $(BUILD)/bench/gemm_bench

$(BUILD)/CTestTestfile.cmake: $(TEST_SOURCES) Makefile
	@mkdir -p $(@D)
	@for test in $(TEST_SOURCES:tests/unit/%.c=%); do \
	    echo "add_test($$test \"$(CURDIR)/$(BUILD)/tests/$$test\")"; \
	    case $$test in engine/test_allocation*) cost=100 ;; engine/*) cost=10 ;; *) cost=1 ;; esac; \
	    echo "set_tests_properties($$test PROPERTIES COST $$cost TIMEOUT 900 WORKING_DIRECTORY \"$(CURDIR)\")"; \
	done > $@

test: all tests $(BUILD)/CTestTestfile.cmake
	cd $(BUILD) && ctest --output-on-failure -j$$(nproc)

# --- what the checks against PyTorch look through ---------------------------------------------------
$(BUILD)/peers/%: tests/peers/%.c $(BUILD)/liblockstep.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -MF $@.d $(LDFLAGS) -o $@ \
	    $(filter %.c %.a,$^) $(LDLIBS)

peers: all $(PEER_PROGRAMS)

# --- benchmarks: the peers are looked up at run time ------------------------------------------------
$(BUILD)/bench/%: bench/%.c $(BUILD)/liblockstep.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -MF $@.d $(LDFLAGS) -o $@ $^ $(LDLIBS) -ldl

bench: all $(BUILD)/bench/gemm_bench
	bench/bench.py

bench-gemm: $(BUILD)/bench/gemm_bench
	$<

# --- fuzzing: clang only, address and undefined-behaviour sanitizers ------------------------------
FUZZ_FLAGS := -std=c17 -O1 -g $(NUMERIC) -pthread -fsanitize=address,undefined \
              -fno-sanitize-recover=all
FUZZ_OBJECTS := $(patsubst src/%.c,$(BUILD)/fuzz/obj/%.o, \
                  $(wildcard src/base/*.c src/formats/*.c src/tokenizer/*.c src/launch/hosts.c) \
                  src/api/trainer_position.c src/api/audit.c src/data/sampler.c src/data/sort.c)

$(BUILD)/fuzz/obj/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	clang $(CPPFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

$(BUILD)/fuzz/%: tests/fuzz/%.c $(FUZZ_OBJECTS)
	@mkdir -p $(@D)
	clang $(CPPFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer -MMD -MP -MF $@.d -o $@ \
	    $(filter %.c %.o,$^) $(LDLIBS)

fuzz: $(FUZZ_PROGRAMS)

# --- house keeping -----------------------------------------------------------------------------
C_FILES := $(shell git ls-files -co --exclude-standard '*.c' '*.h' 2>/dev/null)

format:
	@clang-format -i $(C_FILES)

format-check:
	@clang-format --dry-run -Werror $(C_FILES)

lint:
	tools/lint.py

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig \
	    $(DESTDIR)$(PREFIX)/include/lockstep
	install -m 755 $(BUILD)/lockstep $(DESTDIR)$(PREFIX)/bin/lockstep
	install -m 644 $(BUILD)/liblockstep.a $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(BUILD)/liblockstep.so $(DESTDIR)$(PREFIX)/lib/liblockstep.so.$(VERSION)
	ln -sf liblockstep.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/liblockstep.so.0
	ln -sf liblockstep.so.0 $(DESTDIR)$(PREFIX)/lib/liblockstep.so
	install -m 644 include/lockstep.h $(DESTDIR)$(PREFIX)/include/
	install -m 644 include/lockstep/*.h $(DESTDIR)$(PREFIX)/include/lockstep/
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@MPI@|$(MPI)|' lockstep.pc.in \
	    > $(DESTDIR)$(PREFIX)/lib/pkgconfig/lockstep.pc

clean:
	rm -rf $(BUILD)

-include $(LIBRARY_OBJECTS:.o=.d) $(CLI_OBJECTS:.o=.d) $(SUPPORT_OBJECTS:.o=.d) $(TEST_PROGRAMS:%=%.d) \
         $(PEER_PROGRAMS:%=%.d) $(FUZZ_OBJECTS:.o=.d) $(FUZZ_PROGRAMS:%=%.d)
