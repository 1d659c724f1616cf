// Package golden owns the committed outputs of the program that must not change by
// accident: help texts, faults of a swarm.toml, explained settings, plans, refusals
// of the API, names of metrics, and a data directory of an earlier build. It must
// not know how any of them is made: it runs commands, calls a host over HTTP, and
// compares files.
//
// After a change that is meant to show, go test ./host/internal/golden -update
// writes the outputs anew, and their diff is reviewed with the change. The data
// directory is not among them: -run TestData -update-data makes a new one, which is
// right only when it is meant that a host cannot open the old one any more.
package golden
