#!/bin/sh
# Compiles a crate of the workspace with the variants on the engine's path: cargo calls it with the
# compiler first. Clippy's driver compiles the crates that have hooks. As a wrapper of the
# workspace's crates alone it leaves the libraries as the ordinary lints have checked them, which
# RUSTFLAGS would not. Cargo also asks it for the target's cfgs, and so finds the crate that only
# builds with variants depend on.
rustc=$1
shift
case $CARGO_PKG_NAME in
sync | runtime | storage | txn | sql | allcore) exec clippy-driver "$rustc" "$@" --cfg variants -D warnings ;;
*) exec "$rustc" "$@" --cfg variants -D warnings ;;
esac
