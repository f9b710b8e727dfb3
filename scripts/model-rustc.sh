#!/bin/sh
# Compiles a crate of the workspace for the model machine: cargo calls it with the compiler first.
rustc=$1
shift
exec "$rustc" "$@" --cfg model
