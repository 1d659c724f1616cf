// Package config owns swarm.toml: its grammar, the position of every fault, the
// defaults and the checks between settings. It is the only importer of TOML. It must
// not know how a swarm runs, where it is stored or who connects to it, and it reads
// nothing but the file, the files that file names, and the environment handed to it.
//
// Each key is declared once, as a [Setting] in the list of its table. Reading,
// defaults, validate --explain, plan, definitions over the network and the page
// host/docs/settings.md follow from it.
//
// [Load] and [Parse] report every fault of a file in one run. What they return
// without a fault is complete: references are resolved and defaults applied, so that
// no other package fills in a value.
package config

//go:generate go run ./generate ../../../docs/settings.md
