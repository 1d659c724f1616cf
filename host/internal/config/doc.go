// Package config owns swarm.toml: its grammar, the position of every fault,
// the defaults and the checks between settings. It is the only importer of
// TOML. It must not know how a swarm runs, where it is stored or who connects
// to it, and it reads nothing but the file, the files that file names, and the
// environment handed to it.
//
// [Load] and [Parse] report every fault of a file in one run. What they return
// without a fault is complete: references are resolved and defaults applied,
// so nobody downstream fills in a value again.
package config
