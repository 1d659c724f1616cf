// Package bundle owns the modules that are part of the program. It must not know what
// the modules do.
package bundle
