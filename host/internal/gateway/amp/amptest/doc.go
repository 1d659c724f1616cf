// Package amptest owns another party's program that speaks AMP: it was written from the
// protocol's document alone, with types of its own, and serves tests of the gateway. It
// must not know anything of skep.
package amptest
