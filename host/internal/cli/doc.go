// Package cli owns the commands of the skep program: their arguments, their
// output and their exit codes. It must not know how a host works inside: serve
// and run start one through package host, everything else that concerns a
// running host goes through package client and the public API.
//
// [Main] runs one command line. It reads the world through [Env] alone, so a
// test can run it like any other function. Data goes to stdout, notes go to
// stderr.
package cli
