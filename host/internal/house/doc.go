// Package house owns the rules of the repository that a machine can check: which
// package may import which, which library belongs to which package, which words are
// out of use, and how comments are written. It must not know what the packages do: it
// reads their files.
package house
