# vramtrace: records every CUDA memory call of a program, and reports on it. `make help` lists the targets.
#
#   MODE=release|debug|asan|tsan|cov   outputs in build/$(MODE)
#   CC=gcc|clang   WERROR=1   V=1 (full command lines)   BUILD=folder (instead of build/$(MODE))
#   CUDA_HOME=folder with the toolkit's include/ (found by itself when it is in a usual place)

VERSION := 0.1.0

ifeq ($(origin CC),default)
CC := gcc
endif
MODE   ?= release
BUILD  ?= build/$(MODE)
PREFIX ?= /usr/local
ARCH   := $(shell uname -m)
V      ?= 0
PYTHON ?= python3
CLANG_FORMAT ?= clang-format
CLANG_TIDY   ?= clang-tidy
CPPCHECK     ?= cppcheck
# The newest glibc symbol version that a build may need: what runs on RHEL 9, Debian 12 and Ubuntu 22.04.
GLIBC_MAX    := 2.34

hash  := \#
comma := ,
goals := $(or $(MAKECMDGOALS),all)

# --- The CUDA headers ------------------------------------------------------------------------------------------------
# Where they are looked for, in this order. CUDA_SEARCH= (empty) leaves only CUDA_HOME and what `make deps` unpacked.
site_packages = $(shell $(PYTHON) -c 'import site; print(*site.getsitepackages(), site.getusersitepackages())' 2>/dev/null)
pip_includes  = $(foreach p,$(site_packages),$(p)/nvidia/cu13/include $(p)/nvidia/cuda_runtime/include)
CUDA_SEARCH  ?= $(or $(call find_headers,$(addsuffix /include,$(CUDA_PATH) /usr/local/cuda \
	$(lastword $(sort $(wildcard /usr/local/cuda-*))) /opt/cuda)),$(call find_headers,$(pip_includes)),/usr/include)
has_headers   = $(if $(wildcard $(1)/cuda.h),$(if $(wildcard $(1)/cudaTypedefs.h),$(wildcard $(1)/cuda_runtime_api.h)))
find_headers  = $(firstword $(foreach d,$(1),$(if $(call has_headers,$(d)),$(d))))
CUDA_INC     := $(or $(call find_headers,$(addsuffix /include,$(CUDA_HOME)) $(CUDA_HOME)),$(if \
	$(filter command,$(origin CUDA_HOME)),,$(call find_headers,$(CUDA_SEARCH) build/cuda/include)))
# pip has some headers of the toolkit in packages of their own, beside the main one.
cuda_includes = $(addprefix -isystem ,$(filter-out /usr/include,$(CUDA_INC) \
	$(wildcard $(CUDA_INC)/../../cuda_nvcc/include $(CUDA_INC)/../../cuda_crt/include)))
install_deps = CUDA_INC='$(CUDA_INC)' DEPS='$(DEPS)' sh tests/deps.sh

# `make deps TARGET...`: what deps installs (a compiler, the CUDA headers) is looked for when this file is read, so the
# other targets are made by a second make, started when deps is through.
after_deps := $(filter-out deps,$(goals))
ifneq ($(and $(filter deps,$(goals)),$(after_deps)),)
.PHONY: deps $(after_deps)
$(firstword $(after_deps)): deps
	@+$(MAKE) --no-print-directory $(after_deps)
$(wordlist 2,$(words $(after_deps)),$(after_deps)): $(firstword $(after_deps)) ; @:
deps: ; @$(install_deps)
else

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.PRECIOUS: $(BUILD)/%.o
MAKEFLAGS += --no-builtin-rules

ifeq ($(V),1)
say =
run =
else
# $(call say,WORD) before a command: one short line instead of the command.
say = @printf '  %-6s %s\n' $(1) $(2);
run = @
endif

without_cuda := deps help clean uninstall format format-check layers
ifeq ($(CUDA_INC),)
ifneq ($(filter-out $(without_cuda),$(goals)),)
$(error No CUDA headers (cuda.h, cudaTypedefs.h, cuda_runtime_api.h)$(if $(CUDA_HOME), in CUDA_HOME=$(CUDA_HOME)). \
Run `make deps` (Debian, Ubuntu), or `make CUDA_HOME=/path/to/cuda`; vramtrace builds with toolkits 11.8 to 13)
endif
endif

# --- Flags -----------------------------------------------------------------------------------------------------------
flags_release := -O2 -g
flags_debug   := -O0 -g3
# Instrumented code makes gcc see uses of uninitialised variables that are none. Where variables are is for debuggers, and takes
# a quarter of the time.
flags_asan    := -O1 -g -fno-var-tracking -fsanitize=address,undefined -fno-sanitize-recover=all -Wno-maybe-uninitialized
flags_tsan    := -O1 -g -fno-var-tracking -fsanitize=thread -Wno-maybe-uninitialized
flags_cov     := -O0 -g --coverage
ifeq ($(flags_$(MODE)),)
$(error MODE=$(MODE) is none of release debug asan tsan cov)
endif
# clang links its sanitizers into programs only, and the recorder is a library that is preloaded.
ifneq ($(and $(filter asan tsan,$(MODE)),$(findstring clang,$(CC))),)
$(error MODE=$(MODE) needs gcc)
endif

# A sanitizer's start asks dlsym for what it replaces, before any instrumented code can run.
dl_flags := $(if $(filter asan tsan,$(MODE)),-fno-sanitize=all)
# Of the unit tests, it is what they test whose speed counts.
unit_flags := $(if $(filter asan tsan,$(MODE)),-O0)

std_flags  := -std=gnu11 -fno-omit-frame-pointer -fPIC -pthread $(flags_$(MODE)) $(CFLAGS)
warn_flags := -Wall -Wextra -Wshadow -Wconversion
test_warn  := -Wall -Wextra
# Tests turn warnings into errors; whoever only builds is not stopped by what a newer compiler thinks of.
ifneq ($(filter test check-%,$(goals)),)
WERROR ?= 1
endif
werror     := $(if $(filter 1,$(WERROR)),-Werror)
defines    := -D_GNU_SOURCE -DVT_VERSION='"$(VERSION)"'
depflags    = -MMD -MP -MF $(@:.o=.d)
sim_lib    := -L$(BUILD)/sim

# Objects depend on this file, which changes only when the flags do.
flags_line := $(CC) $(std_flags) $(warn_flags) $(dl_flags) $(unit_flags) $(defines) $(cuda_includes) $(CPPFLAGS) $(LDFLAGS)
flags_file := $(BUILD)/flags
ifneq ($(filter-out $(without_cuda),$(goals)),)
flags_kept := $(shell mkdir -p $(BUILD); f=$(flags_file); new=$$(printf '%s\n' '$(subst ','\'',$(flags_line))'); \
	[ "$$(cat $$f 2>/dev/null)" = "$$new" ] || printf '%s\n' "$$new" >$$f)
endif

# --- Sources ---------------------------------------------------------------------------------------------------------
objs = $(addsuffix .o,$(addprefix $(BUILD)/,$(basename $(1))))

src_trace   := $(wildcard src/trace/*.c)
src_record  := $(wildcard src/record/*.c src/record/*/*.c)
src_python  := $(wildcard src/python/*.c)
src_elf     := $(wildcard src/elf/*.c)
src_hooks   := $(wildcard src/hooks/*.c src/hooks/*.S)
src_tools   := $(wildcard tools/*.c tools/*/*.c)
src_proto   := $(wildcard tools/output/*.proto)
src_simcuda := $(wildcard tests/sim/sim_*.c)
src_simrt   := $(wildcard tests/sim/cudart_*.c)
src_simnvml := tests/sim/nvml_sim.c
src_simc10  := $(wildcard tests/sim/c10_*.c)
src_selftest := $(wildcard tests/sim/selftest*.c)
# Under ThreadSanitizer, what is minutes for one thread is left out (what whatif has of several, tests/cases/whatif.py runs), and what
# needs the real libunwind, which crashes there.
not_tsan    := tests/unit/test_columns.c tests/unit/test_damage.c tests/unit/test_unwind.c tests/unit/test_whatif.c
src_unit    := $(filter-out $(if $(filter tsan,$(MODE)),$(not_tsan)),$(wildcard tests/unit/test_*.c))
src_example := $(wildcard examples/*.c)
src_gpu     := $(wildcard tests/gpu/*.c)
man_pages   := $(wildcard tools/man/*.1)
src_bench   := $(wildcard tests/bench/*.c)
# The random program, linked with one of three ways to reach the driver.
routes      := runtime driver dlsym
src_route   := $(wildcard tests/cases/random_*.c)
src_case    := $(filter-out $(src_route),$(wildcard tests/cases/*.c))

lib  := $(BUILD)/libvramtrace.so
with_lib := $(if $(filter tsan,$(MODE)),$(BUILD)/sim/libunwind.so.8)
cli  := $(BUILD)/vramtrace
torches := $(addprefix $(BUILD)/sim/torch/,lib/libc10.so lib/libc10_cuda.so lib/libtorch_cuda.so lib/torch_binding.so \
	version.py)
sims := $(addprefix $(BUILD)/sim/,libcuda.so.1 libcuda.so libcudart.so.13 libcudart.so libcudart_static.a libnvidia-ml.so.1) $(torches)
units    := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(src_unit))
selftest := $(patsubst tests/sim/%.c,$(BUILD)/tests/sim/%,$(src_selftest))
examples := $(foreach n,$(basename $(notdir $(src_example))),$(addprefix $(BUILD)/examples/$(n)-,shared static))
gpus     := $(foreach n,$(basename $(notdir $(src_gpu))),$(addprefix $(BUILD)/gpu/$(n)-,shared static))
cases    := $(patsubst tests/cases/%.c,$(BUILD)/cases/%,$(src_case))
randoms  := $(if $(src_route),$(addprefix $(BUILD)/cases/random_calls-,runtime-shared runtime-static driver dlsym))
rows     := $(addprefix $(BUILD)/rows/,rows_caller libcuda.so.1 old/libcuda.so.1 rows_decoy.so rows_linked.so)
benches  := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(src_bench))
bench_libs := $(patsubst tests/bench/lib/%.c,$(BUILD)/bench/%.so,$(wildcard tests/bench/lib/*.c))
programs := $(examples) $(gpus) $(cases) $(randoms) $(benches) $(bench_libs)

.PHONY: all deps demo test check-unit check-sim check-gpu check-needed bench dist install uninstall \
	format format-check tidy layers hdr-check cross-aarch64 help clean
all: $(lib) $(with_lib) $(cli) $(sims) $(examples) ## build the recorder, the command and the simulated CUDA

# --- Objects ---------------------------------------------------------------------------------------------------------
inc_src := -Iinclude -Isrc

$(BUILD)/src/hooks/%.o: inc = $(inc_src) $(cuda_includes)
$(BUILD)/src/%.o: inc = $(inc_src)
$(BUILD)/src/%.o: more = -fvisibility=hidden -ftls-model=initial-exec $(warn_flags)
$(BUILD)/src/hooks/dl.o $(BUILD)/src/elf/object.o: more += $(dl_flags)
$(BUILD)/tools/%.o: inc = $(inc_src) -Itools -I$(BUILD)/generated
$(BUILD)/tools/%.o: more = $(warn_flags)
$(BUILD)/tests/%.o $(BUILD)/examples/%.o: inc = $(inc_src) -Itools -Itests -Itests/sim $(cuda_includes)
$(BUILD)/tests/%.o $(BUILD)/examples/%.o: more = $(test_warn)
$(BUILD)/tests/unit/%.o: more = $(test_warn) $(unit_flags)

compile = $(CC) $(std_flags) $(more) $(werror) $(defines) $(inc) $(CPPFLAGS) $(depflags) -c -o $@ $<

$(BUILD)/%.o: %.c $(flags_file)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(compile)

$(BUILD)/%.o: %.S $(flags_file)
	@mkdir -p $(@D)
	$(call say,AS,$<)$(compile)

# --- The recorder ----------------------------------------------------------------------------------------------------
lib_objs := $(call objs,$(src_trace) $(src_elf) $(src_record) $(src_python) $(src_hooks))
# An anonymous version script: a named version node would silently not interpose. Its names are the rows of driver.def,
# runtime.def and torch.def and the lines of exports.list.
export_defs := $(wildcard src/hooks/driver.def src/hooks/runtime.def src/hooks/torch.def)
export_rows = for def in $(notdir $(export_defs)); do printf '%s\n' '$(hash)include <cuda.h>' \
	'$(hash)define ROW(export, ...) @$(hash)export' "$(hash)include \"hooks/$$def\""; done | \
	$(CC) -E -P $(inc_src) $(cuda_includes) - | tr @ '\n' | sed -n 's/^"\(.*\)".*/\1/p'

$(BUILD)/libvramtrace.map: $(export_defs) $(wildcard src/hooks/exports.list) $(flags_file)
	@mkdir -p $(@D)
	$(call say,GEN,$@){ echo '{ global:'; \
		{ $(export_rows); sed 's/#.*//;/^ *$$/d' $(filter %.list,$^) /dev/null; } | sort -u | sed 's/$$/;/'; \
		echo 'local: *; };'; } >$@

lib_ldflags := -shared -Wl,-soname,libvramtrace.so -Wl,-z,now -Wl,-z,relro -Wl,--no-undefined -Wl,--as-needed \
	-Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN' -Wl,-Bsymbolic

$(lib): $(lib_objs) $(BUILD)/libvramtrace.map
	$(call say,LD,$@)$(CC) $(std_flags) $(lib_ldflags) -Wl,--version-script=$(BUILD)/libvramtrace.map \
		-o $@ $(lib_objs) $(LDFLAGS)

# The same recorder with the times of its captures taken.
timed := $(if $(filter x86_64,$(ARCH)),$(BUILD)/libvramtrace-timed.so)
$(BUILD)/libvramtrace-timed.so: $(lib_objs) $(BUILD)/tests/bench/timed/timed.o $(BUILD)/libvramtrace.map
	$(call say,LD,$@)$(CC) $(std_flags) $(lib_ldflags) -Wl,--version-script=$(BUILD)/libvramtrace.map \
		-Wl,--wrap=current_stack,--wrap=stackset_intern,--wrap=native_capture -o $@ $(filter %.o,$^) $(LDFLAGS)

# Found by LD_LIBRARY_PATH: ThreadSanitizer opens libraries in the place of the recorder, whose search path then does not count.
$(BUILD)/sim/libunwind.so.8: $(BUILD)/tests/tsan/libunwind.o
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(std_flags) -shared -Wl,-soname,$(@F) -o $@ $^ $(LDFLAGS)

# --- The command -----------------------------------------------------------------------------------------------------
# Messages of other programs' formats: C from the .proto files, under $(BUILD)/generated.
proto_c := $(patsubst tools/%.proto,$(BUILD)/generated/%.pb-c.c,$(src_proto))
proto_h := $(proto_c:.c=.h)
proto_objs := $(proto_c:.c=.o)

$(BUILD)/generated/%.pb-c.c $(BUILD)/generated/%.pb-c.h: tools/%.proto
	@mkdir -p $(@D)
	$(call say,PROTO,$<)protoc-c --proto_path=$(<D) --c_out=$(@D) $<

$(proto_objs): %.o: %.c $(flags_file)
	$(call say,CC,$<)$(CC) $(std_flags) $(defines) $(CPPFLAGS) $(depflags) -c -o $@ $<

$(call objs,$(src_tools)): | $(proto_h)

# The parts of the page, as arrays; and what the page says its own script and style must hash to.
html_parts := $(wildcard tools/output/html/*.js tools/output/html/*.css tools/output/html/*.html)
html_c     := $(BUILD)/generated/output/html_page.c
html_obj   := $(html_c:.c=.o)
html_array  = { echo 'const unsigned char html_$(1)[] = {'; od -An -v -tu1 $(2) | sed 's/  *\([0-9]*\)/\1,/g'; \
	echo '};'; echo 'const size_t html_$(1)_bytes = sizeof(html_$(1));'; }
html_hash   = printf 'const char html_%s_hash[] = "%s";\n' $(1) \
	"$$(sha256sum $(2) | cut -c 1-64 | tr a-f A-F | basenc --base16 -d | base64)"
html_script = $(@D)/html_script.js
html_style  = $(filter %.css,$^)

$(html_c): $(html_parts)
	@mkdir -p $(@D)
	$(call say,GEN,$@)cat $(sort $(filter %.js,$^)) >$(html_script); \
		{ echo '$(hash)include "output/html_parts.h"'; $(call html_array,script,$(html_script)); \
		$(call html_array,style,$(html_style)); $(call html_array,body,$(filter %.html,$^)); \
		$(call html_hash,script,$(html_script)); $(call html_hash,style,$(html_style)); } >$@

$(html_obj): %.o: %.c $(flags_file)
	$(call say,CC,$<)$(compile) -Itools $(inc_src)

cli_objs := $(call objs,$(src_tools) $(src_trace)) $(proto_objs) $(html_obj)
cli_libs := -Wl,--as-needed -ldw -lelf -lzstd -lz -lprotobuf-c -lncursesw -ltinfo -liberty -lm

$(cli): $(cli_objs)
	$(call say,LD,$@)$(CC) $(std_flags) -Wl,-z,now -Wl,-z,relro -o $@ $^ $(LDFLAGS) $(cli_libs)

# --- The simulated CUDA ----------------------------------------------------------------------------------------------
sim_map = $(addprefix -Wl$(comma)--version-script=,$(wildcard tests/sim/$(basename $(basename $(@F))).map))

$(BUILD)/sim/libcuda.so.1: $(call objs,$(src_simcuda)) $(wildcard tests/sim/libcuda.map)
$(BUILD)/sim/libcudart.so.13: $(call objs,$(src_simrt)) $(wildcard tests/sim/libcudart.map)
$(BUILD)/sim/libnvidia-ml.so.1: $(call objs,$(src_simnvml)) $(wildcard tests/sim/libnvidia-ml.map)
$(BUILD)/sim/libcuda.so.1 $(BUILD)/sim/libcudart.so.13 $(BUILD)/sim/libnvidia-ml.so.1:
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(std_flags) -shared -Wl,-soname,$(@F) $(sim_map) -Wl,--no-undefined -Wl,--as-needed \
		-o $@ $(filter %.o,$^) $(LDFLAGS) -ldl

$(BUILD)/sim/libcuda.so: $(BUILD)/sim/libcuda.so.1
$(BUILD)/sim/libcudart.so: $(BUILD)/sim/libcudart.so.13
$(BUILD)/sim/libcuda.so $(BUILD)/sim/libcudart.so:
	$(run)ln -sf $(<F) $@

$(BUILD)/sim/libcudart_static.a: $(call objs,$(src_simrt))
	@mkdir -p $(@D)
	$(call say,AR,$@)rm -f $@; $(AR) rcs $@ $^

# PyTorch's libraries where its package has them.
torch_lib := -L$(BUILD)/sim/torch/lib -Wl,-rpath,'$$ORIGIN'

$(BUILD)/sim/torch/lib/libc10.so: $(BUILD)/tests/sim/c10_report.o
$(BUILD)/sim/torch/lib/libc10_cuda.so: $(call objs,$(filter-out %/c10_report.c %/c10_graph.c,$(src_simc10)))
$(BUILD)/sim/torch/lib/libc10_cuda.so: torch_needs = -lc10 -lcudart -lcuda
$(BUILD)/sim/torch/lib/libtorch_cuda.so: $(BUILD)/tests/sim/c10_graph.o
$(BUILD)/sim/torch/lib/libtorch_cuda.so: torch_needs = -lc10_cuda -lcudart
$(BUILD)/sim/torch/lib/torch_binding.so: $(BUILD)/tests/cases/lib/torch_binding.o
$(BUILD)/sim/torch/lib/torch_binding.so: torch_needs = -ltorch_cuda
$(BUILD)/sim/torch/lib/torch_binding.so: | $(BUILD)/sim/torch/lib/libtorch_cuda.so
$(BUILD)/sim/torch/lib/libc10_cuda.so: | $(addprefix $(BUILD)/sim/,libcuda.so libcudart.so torch/lib/libc10.so)
$(BUILD)/sim/torch/lib/libtorch_cuda.so: | $(BUILD)/sim/torch/lib/libc10_cuda.so
$(BUILD)/sim/torch/lib/%.so:
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(std_flags) -shared -Wl,-soname,$(@F) -Wl,--no-undefined -Wl,--as-needed \
		-o $@ $(filter %.o,$^) $(LDFLAGS) $(sim_lib) $(torch_lib) $(torch_needs)

$(BUILD)/sim/torch/version.py:
	@mkdir -p $(@D)
	$(run)printf "from typing import Optional\n\n__all__ = ['__version__']\n__version__ = '2.11.0+sim'\n" >$@

# --- Programs --------------------------------------------------------------------------------------------------------
link_program = $(CC) $(std_flags) -o $@ $(filter %.o,$^) $(LDFLAGS) $(sim_lib) -Wl,--as-needed

$(programs) $(units): | $(sims)

# $(call program,OUTPUT FOLDER,SOURCE FOLDER)
define program
$(BUILD)/$(1)/%-shared: $(BUILD)/$(2)/%.o
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)$$(link_program) -lcudart -lcuda -lm
$(BUILD)/$(1)/%-static: $(BUILD)/$(2)/%.o $(BUILD)/sim/libcudart_static.a
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)$$(link_program) -lcudart_static -lcuda -ldl -lm
endef
$(eval $(call program,examples,examples))
$(eval $(call program,gpu,tests/gpu))

# Called from Python, which is no program of this build.
$(bench_libs): $(BUILD)/bench/%.so: $(BUILD)/tests/bench/lib/%.o
	@mkdir -p $(@D)
	$(call say,LD,$@)$(link_program) -shared -lcuda -ldl

# Calls the unwinder itself.
$(BUILD)/bench/unwind: $(call objs,$(wildcard src/record/unwind/*.c) src/record/arena.c)
# Writes traces itself.
$(BUILD)/bench/make_trace: $(call objs,$(src_trace))

# Replays without the command.
$(BUILD)/bench/whatif: $(call objs,$(addprefix tools/analysis/,$(notdir $(wildcard tools/analysis/allocator*.c)) settings.c \
	whatif.c whatif_predict.c) tools/model/memory.c src/trace/tree.c)

# Has the books of bounded traces inside.
$(BUILD)/cases/rebound: $(call objs,$(src_trace) $(wildcard src/record/keep/*.c) src/record/arena.c)

$(cases): $(BUILD)/cases/%: $(BUILD)/tests/cases/%.o
$(benches): $(BUILD)/bench/%: $(BUILD)/tests/bench/%.o
$(cases) $(benches):
	@mkdir -p $(@D)
	$(call say,LD,$@)$(link_program) -lcudart -lcuda -lm

random_objs := $(call objs,$(filter-out $(routes:%=tests/cases/random_%.c),$(src_route)))
$(BUILD)/cases/random_calls-runtime-%: $(random_objs) $(BUILD)/tests/cases/random_runtime.o
	@mkdir -p $(@D)
	$(call say,LD,$@)$(link_program) $(if $(filter static,$*),-lcudart_static -ldl,-lcudart)
$(BUILD)/cases/random_calls-driver: $(random_objs) $(BUILD)/tests/cases/random_driver.o
	@mkdir -p $(@D)
	$(call say,LD,$@)$(link_program) -lcuda
$(BUILD)/cases/random_calls-dlsym: $(random_objs) $(BUILD)/tests/cases/random_dlsym.o
	@mkdir -p $(@D)
	$(call say,LD,$@)$(link_program) -ldl

# The test of every row of driver.def: its own driver, its callers, and others that look like them.
$(BUILD)/rows/generated: tests/cases/lib/rows_generate.py src/hooks/driver.def src/hooks/driver_used.def $(flags_file)
	$(call say,GEN,$(@D)/*.c)$(PYTHON) $< $(@D) $(CC) $(inc_src) $(cuda_includes)
	@touch $@

rows_cc = $(CC) $(std_flags) $(test_warn) $(werror) $(defines) -Itests $(cuda_includes) $(CPPFLAGS) $(LDFLAGS)
rows_map := -Wl,--version-script=tests/cases/lib/rows.map

$(rows): $(BUILD)/rows/generated $(wildcard tests/cases/lib/rows*.h)
$(BUILD)/rows/rows_caller:
	$(call say,LD,$@)$(rows_cc) -o $@ $@.c -ldl
$(BUILD)/rows/libcuda.so.1 $(BUILD)/rows/old/libcuda.so.1:
	@mkdir -p $(@D)
	$(call say,LD,$@)$(rows_cc) $(if $(findstring /old/,$@),-DROWS_OLD) -shared -Wl,-soname,$(@F) -Wl,-Bsymbolic \
		$(rows_map) -o $@ $(BUILD)/rows/rows_driver.c
$(BUILD)/rows/rows_decoy.so:
	$(call say,LD,$@)$(rows_cc) -shared $(rows_map) -o $@ $(@:.so=.c)
$(BUILD)/rows/rows_linked.so: $(BUILD)/rows/libcuda.so.1
	$(call say,LD,$@)$(rows_cc) -shared -o $@ $(@:.so=.c) $<

# The simulator's own tests.
$(selftest): %: %.o | $(sims)
	$(call say,LD,$@)$(link_program) -lcudart -lcuda -lcmocka -ldl

# --- Tests -----------------------------------------------------------------------------------------------------------
$(BUILD)/tests/libunder_test.a: $(call objs,$(src_trace) $(src_elf) $(src_record) $(src_python) $(filter-out tools/main.c,$(src_tools))) $(proto_objs) $(html_obj)
	@mkdir -p $(@D)
	$(call say,AR,$@)rm -f $@; $(AR) rcs $@ $^

$(units): %: %.o $(BUILD)/tests/libunder_test.a
	$(call say,LD,$@)$(CC) $(std_flags) -o $@ $^ $(LDFLAGS) -lcmocka $(cli_libs)

runner = BUILD_DIR=$(abspath $(BUILD)) MODE=$(MODE) V=$(V) CC='$(CC)' CUDA_FLAGS='$(cuda_includes)' \
	sh tests/run-cases.sh
# What takes longest comes first, so that no core is left without work in the end.
longest := families_ledger.sh html_browser.py python_frames.py rows.sh whatif.py pack.sh ledger.sh torch_ledger.sh fuzz_smoke.sh kill9.py \
	python_exit.py python_torture.py threads.sh oom_driver.py unwind.sh fork.sh bad_output.sh python_smoke.py
all_scripts = $(sort $(wildcard $(addprefix $(1)/*.,sh py)))
scripts = $(filter $(addprefix $(1)/,$(longest)),$(all_scripts)) $(filter-out $(addprefix $(1)/,$(longest)),$(all_scripts))

# Of the programs for GPUs, those that cases run on the simulated CUDA.
gpu_cases := $(BUILD)/gpu/transfers-shared
# rows.sh is not run under ThreadSanitizer.
case_rows := $(if $(filter tsan,$(MODE)),,$(rows))

# The sources are the same in every mode.
source_checks := $(if $(filter asan tsan cov,$(MODE)),,layers hdr-check)

test: all $(units) $(selftest) $(cases) $(randoms) $(case_rows) $(gpu_cases) $(source_checks) check-needed ## every test that needs no GPU
	$(run)$(runner) test $(call scripts,tests/cases) $(units) $(selftest)

check-unit: $(units) $(selftest) ## only the unit tests
	$(run)$(runner) unit $(units) $(selftest)

check-sim: all $(cases) $(randoms) $(case_rows) $(gpu_cases) ## only the end-to-end cases, on the simulated CUDA
	$(run)$(runner) sim $(call scripts,tests/cases)

check-gpu: all $(gpus) $(cases) $(benches) $(timed) ## tests that need a GPU (skipped without one)
	$(run)TEST_TIMEOUT=3600 TEST_JOBS=1 $(runner) gpu $(call scripts,tests/gpu)

# The table first, then what takes one thing apart.
bench: all $(benches) $(bench_libs) ## measurements, on the simulated CUDA (SAVE=1: into tests/bench/results.md)
	$(run)BUILD_DIR=$(abspath $(BUILD)) SAVE=$(SAVE) $(PYTHON) tests/bench/bench.py
	$(run)for b in $(wildcard tests/bench/*.sh); do \
		BUILD_DIR=$(abspath $(BUILD)) LD_LIBRARY_PATH=$(abspath $(BUILD))/sim sh $$b || exit 1; done

check-needed: $(lib) $(cli) ## what the recorder links, exports and asks of glibc
ifneq ($(filter release debug,$(MODE)),)
	$(run)sh tests/elf.sh needed $(lib) libc.so.6
	$(run)sh tests/elf.sh exports $(lib) $(BUILD)/libvramtrace.map
	$(run)sh tests/elf.sh glibc $(GLIBC_MAX) $(lib) $(cli)
else
	@echo '  skip   check-needed: only in MODE=release and MODE=debug'
endif

demo: all ## run a leaking program on the simulated CUDA under the preload; prints the report
	$(run)rm -f $(BUILD)/demo.vt
	$(run)CUSIM_LINK=25G LD_LIBRARY_PATH=$(abspath $(BUILD))/sim $(cli) run -o $(BUILD)/demo.vt -- $(BUILD)/examples/demo-shared

# --- Checks of the sources -------------------------------------------------------------------------------------------
headers    := $(wildcard include/*/*.h src/*/*.h src/*/*/*.h tools/*.h tools/*/*.h tests/sim/*.h)
formatted  := $(wildcard $(foreach d,include/* src/* src/*/* tools tools/* tests/* tests/*/lib examples,$(d)/*.c $(d)/*.h))
tidy_files := $(filter %.c,$(src_trace) $(src_elf) $(src_record) $(src_python) $(src_hooks)) $(src_tools)
inc_of      = $(inc_src) $(if $(filter tools/%,$(1)),-Itools -I$(BUILD)/generated) $(if $(filter tests/%,$(1)),-Itests/sim) \
	$(if $(filter src/hooks/% tests/%,$(1)),$(cuda_includes))

layers: ## every include follows the arrows of the architecture
	$(run)sh tests/layers.sh

hdr-check: $(patsubst %,$(BUILD)/check/%.alone,$(headers)) ## every header compiles alone

$(BUILD)/check/%.h.alone: %.h $(flags_file) | $(proto_h)
	@mkdir -p $(@D)
	$(call say,HDR,$<)$(CC) $(std_flags) $(warn_flags) -Werror $(defines) $(call inc_of,$<) $(CPPFLAGS) \
		-MMD -MP -MF $@.d -MT $@ -fsyntax-only -include $< -x c /dev/null
	@touch $@

tidy: $(patsubst %,$(BUILD)/check/%.tidy,$(tidy_files)) ## clang-tidy and cppcheck over src and tools

# uthash's macros look like use after free and like uses of garbage to clang's analyzer, and take it minutes.
uthash_checks = $(if $(shell grep -l 'HASH_' $(1)),--checks=-clang-analyzer-*)
# The paths that clang's analyzer follows through one function: in the longest functions a third of its default, which is three
# times the time for them.
tidy_args := $(addprefix --extra-arg=,-Xclang -analyzer-config -Xclang max-nodes=75000)
cppcheck_flags := --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
	--suppress=missingIncludeSystem --suppress=uninitvar -D__x86_64__ -D'ElfW(type)=Elf64_$(hash)$(hash)type' -Iinclude -Isrc -Itools

$(BUILD)/check/%.c.tidy: %.c .clang-tidy $(headers) $(flags_file) | $(proto_h)
	@mkdir -p $(@D)
	$(call say,TIDY,$<)$(CLANG_TIDY) --quiet --warnings-as-errors='*' $(call uthash_checks,$<) $(tidy_args) $< -- -std=gnu11 $(defines) \
		$(call inc_of,$<) >$@.log 2>&1 || { cat $@.log; exit 1; }
	$(run)$(CPPCHECK) $(cppcheck_flags) $<
	@touch $@

format: ## clang-format every C file in place
	$(run)$(CLANG_FORMAT) -i $(formatted)

format-check: ## fail when clang-format would change a file
	$(run)$(CLANG_FORMAT) --dry-run -Werror $(formatted)

# `make deps DEPS=ci` takes the libraries of build/arm64.
cross-aarch64: $(cli) ## the recorder for aarch64: cross-compiled, and tried on an emulated processor
	@$(MAKE) --no-print-directory CC=aarch64-linux-gnu-gcc ARCH=aarch64 BUILD=build/aarch64 \
		CPPFLAGS='-idirafter build/arm64/usr/include/aarch64-linux-gnu' \
		build/aarch64/libvramtrace.so build/aarch64/examples/hello-shared
	$(run)sh tests/elf.sh needed build/aarch64/libvramtrace.so libc.so.6
	$(run)sh tests/elf.sh exports build/aarch64/libvramtrace.so build/aarch64/libvramtrace.map
	$(run)sh tests/aarch64.sh $(cli)

# --- Packages --------------------------------------------------------------------------------------------------------
deps: ## install what the build and the tests need (Debian, Ubuntu)
	@$(install_deps)

dist_name := vramtrace-$(VERSION)-$(ARCH)

dist: all check-needed ## build/dist/vramtrace-VERSION-ARCH.tar.gz, which runs wherever it is unpacked
	$(run)sh tests/dist.sh $(BUILD) vramtrace-$(VERSION) build/dist/$(dist_name).tar.gz $(GLIBC_MAX)

install: $(lib) $(with_lib) $(cli) ## into $(DESTDIR)$(PREFIX) (PREFIX=/usr/local)
	install -D -m 755 $(cli) $(DESTDIR)$(PREFIX)/bin/vramtrace
	install -D -m 755 $(lib) $(DESTDIR)$(PREFIX)/lib/libvramtrace.so
	install -D -m 644 include/vramtrace/vramtrace.h $(DESTDIR)$(PREFIX)/include/vramtrace/vramtrace.h
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 $(man_pages) $(DESTDIR)$(PREFIX)/share/man/man1/

uninstall: ## undo install
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/,bin/vramtrace lib/libvramtrace.so include/vramtrace/vramtrace.h \
		$(addprefix share/man/man1/,$(notdir $(man_pages))))

help: ## this list
	@awk -F'## ' '/^[a-z0-9-]+:.* ## /{ split($$1, t, ":"); printf "  %-14s %s\n", t[1], $$2 }' Makefile
	@sed -n 's/^# \{3,\}/  /p' Makefile | head -n 4

clean: ## remove what was built, in every mode (what deps downloaded stays)
	$(run)rm -rf $(filter-out build/cuda build/arm64,$(wildcard build/*)) $(BUILD)

-include $(patsubst %.o,%.d,$(sort $(lib_objs) $(cli_objs) $(call objs,$(src_simcuda) $(src_simrt) $(src_simnvml) $(src_simc10) $(src_unit) $(src_selftest) \
	$(src_example) $(src_gpu) $(src_bench) $(src_route) $(src_case)))) $(wildcard $(patsubst %,$(BUILD)/check/%.alone.d,$(headers)))
endif
