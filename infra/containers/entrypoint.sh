#!/bin/sh
# Run a command with the kernels that are compiled for this machine's processor: those of NUMBA_CPU_NAME if it is set, else of the highest level that
# the image has and the processor knows. They are linked into NUMBA_CACHE_DIR, where what is missing can be added, also on a root filesystem that
# cannot be written.
set -eu

KERNELS=${KERNELS:-/opt/kernels}
CPUINFO=${CPUINFO:-/proc/cpuinfo}

knows() {
    for flag; do
        case " $flags " in *" $flag "*) ;; *) return 1 ;; esac
    done
}

choose() {
    flags=$(sed -n 's/^flags[[:space:]]*: //p' "$CPUINFO" | head -n 1)
    if ! knows avx2 bmi1 bmi2 f16c fma abm movbe; then
        return
    fi
    if [ -d "$KERNELS/x86-64-v4" ] && knows avx512f avx512bw avx512cd avx512dq avx512vl; then
        echo x86-64-v4
    elif [ -d "$KERNELS/x86-64-v3" ]; then
        echo x86-64-v3
    fi
}

level=${NUMBA_CPU_NAME:-$(choose)}
if [ -n "$level" ] && [ -d "$KERNELS/$level" ]; then
    export NUMBA_CPU_NAME="$level" NUMBA_CPU_FEATURES="${NUMBA_CPU_FEATURES-}" NUMBA_CACHE_DIR="${NUMBA_CACHE_DIR:-/tmp/kernels}"
    if ! { mkdir -p "$NUMBA_CACHE_DIR" && cp -Rsf "$KERNELS/$level/." "$NUMBA_CACHE_DIR/"; }; then
        echo "entrypoint: $NUMBA_CACHE_DIR cannot be written, every process compiles kernels anew; mount a folder there" >&2
    fi
fi
exec "$@"
