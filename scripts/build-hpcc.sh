#!/bin/sh
# Builds hpcc.mpich: the HPC Challenge benchmark, linked with MPICH. Debian's package hpcc is
# linked with Open MPI, and no binary runs under both. The source is that of Debian's package,
# fetched and verified by apt. Run again, it changes nothing, unless an older version of this
# script built the program.
#
#   scripts/build-hpcc.sh           install it as /usr/local/bin/hpcc.mpich; needs root
#   PREFIX=DIR scripts/build-hpcc.sh
#
# It needs MPICH and a BLAS, which install-tools.sh installs, and gcc, libc6-dev and make.
# MPICH's headers are taken from a package that is unpacked and not installed: with its
# dependencies it would bring a Fortran compiler.
set -eu

PREFIX=${PREFIX:-/usr/local}
PROGRAM=$PREFIX/bin/hpcc.mpich
MARK="cnibench: all ranks leave their last operation before one ends"

say() { echo "build-hpcc: $*"; }
fail() { echo "build-hpcc: $*" >&2; exit 1; }

if [ -x "$PROGRAM" ] && grep -q "$MARK" "$PROGRAM"; then
	say "there already: $PROGRAM"
	exit 0
fi
[ -w "$PREFIX/bin" ] || fail "$PREFIX/bin cannot be written: run sudo sh scripts/build-hpcc.sh"
for tool in gcc make apt-get dpkg-deb; do
	command -v "$tool" >/dev/null || fail "no $tool: apt-get install gcc libc6-dev make"
done
library() { ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'; }
BLAS=$(library libblas.so.3)
MPICH=$(library libmpich.so.12)
[ -n "$BLAS" ] && [ -n "$MPICH" ] || fail "no MPICH or no BLAS: run sudo sh scripts/install-tools.sh"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# sources prints the apt entry of the source packages of the mirror, suite and component
# that hpcc comes from, with the keys that this machine uses for them.
sources() {
	set -- $(apt-cache madison hpcc | awk -F'|' '$3 ~ /Packages/ { print $3; exit }')
	[ $# -ge 2 ] || fail "apt knows no package hpcc: add a mirror of Debian's component main"
	uri=${1%/} suite=${2%%/*} component=${2#*/}
	keys=$(grep -rhi '^signed-by:' /etc/apt/sources.list.d 2>/dev/null | grep -m 1 -E 'debian|ubuntu' | cut -d' ' -f2-)
	echo "Types: deb-src"
	echo "URIs: $uri"
	echo "Suites: $suite"
	echo "Components: $component"
	if [ -n "$keys" ]; then echo "Signed-By: $keys"; fi
}

mkdir -p "$dir/sources" "$dir/lists/partial" "$dir/cache/archives/partial"
sources >"$dir/sources/hpcc.sources"
own() {
	apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$dir/sources" \
		-o Dir::State::Lists="$dir/lists" -o Dir::Cache="$dir/cache" -o APT::Sandbox::User=root "$@"
}
cd "$dir"
say "fetching the source of Debian's package"
own update >log 2>&1 || { cat log >&2; fail "apt-get update failed"; }
own source --tar-only --download-only hpcc >log 2>&1 || { cat log >&2; fail "apt-get source hpcc failed"; }
apt-get -q -o APT::Sandbox::User=root download libmpich-dev >log 2>&1 || { cat log >&2; fail "apt-get download libmpich-dev failed"; }
dpkg-deb -x libmpich-dev_*.deb mpich
headers=$(dirname "$(find "$dir/mpich" -name mpi.h | head -n 1)")
tar xf hpcc_*.orig.tar.*
cd hpcc-*/

# In MPI_Finalize of MPICH before 4.2, over UCX, a rank waits until its peers acknowledge that
# they have all of its messages, and then for all ranks in a barrier. A rank in that barrier
# acknowledges nothing, so that its peers wait for ever (github.com/pmodels/mpich/pull/6596).
# It got there too early if a peer that was still in an operation had acknowledged its own.
cat >"$dir/finalize.c" <<END
#include <mpi.h>
#include <unistd.h>

const char mark[] = "$MARK";

int MPI_Finalize(void)
{
	PMPI_Barrier(MPI_COMM_WORLD);
	usleep(500000);
	return PMPI_Finalize();
}
END
gcc -O2 -I"$headers" -c -o "$dir/finalize.o" "$dir/finalize.c" || fail "finalize.c does not compile"

cat >hpl/Make.mpich <<END
SHELL = /bin/sh
CD = cd
CP = cp
LN_S = ln -s
MKDIR = mkdir -p
RM = rm -f
TOUCH = touch
ARCH = mpich
TOPdir = ../../..
INCdir = \$(TOPdir)/include
BINdir = \$(TOPdir)/bin/\$(ARCH)
LIBdir = \$(TOPdir)/lib/\$(ARCH)
HPLlib = \$(LIBdir)/libhpl.a
F2CDEFS = -DAdd_ -DF77_INTEGER=int -DStringSunStyle
HPL_INCLUDES = -I\$(INCdir) -I\$(INCdir)/\$(ARCH) -I$headers
HPL_LIBS = $dir/finalize.o \$(HPLlib) $MPICH $BLAS -lm
HPL_OPTS =
HPL_DEFS = \$(F2CDEFS) \$(HPL_OPTS) \$(HPL_INCLUDES)
CC = gcc
CCNOOPT = \$(HPL_DEFS)
CCFLAGS = \$(HPL_DEFS) -O2 -std=gnu99 -w
LINKER = gcc
LINKFLAGS = -O2
ARCHIVER = ar
ARFLAGS = r
RANLIB = ranlib
END
say "building $PROGRAM"
make arch=mpich >"$dir/log" 2>&1 || { tail -n 30 "$dir/log" >&2; fail "it does not compile"; }
install -m 755 hpcc "$PROGRAM"
say "installed: $PROGRAM"
