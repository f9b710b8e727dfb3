#!/bin/sh
# Compiles a crate of the workspace for the model machine: cargo calls it with the compiler first.
# Clippy's driver compiles the simulation: cargo clippy without --cfg model sees almost none of it.
rustc=$1
shift
case $CARGO_PKG_NAME in
simulation) exec clippy-driver "$rustc" "$@" --cfg model -D warnings ;;
*) exec "$rustc" "$@" --cfg model -D warnings ;;
esac
