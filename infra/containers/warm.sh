#!/bin/sh
# Compile kernels for every level of LEVELS into /opt/kernels: in a build of the image.
set -eu
for level in $LEVELS; do
    NUMBA_CACHE_DIR=/opt/kernels/$level /opt/leafledger/bin/leafledger warm --cpu "$level" ${METHODS:+--methods "$METHODS"}
done
chmod -R a+rX /opt/kernels
