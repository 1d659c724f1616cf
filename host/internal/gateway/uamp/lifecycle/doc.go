// Package lifecycle owns the states of what one envelope of UAMP begins, and what other
// envelopes about it change. It must not know how the states are kept, nor who receives them.
package lifecycle
