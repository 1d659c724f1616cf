package main

import (
	"math/big"
	"strings"
)

// Digits behind the point: of a value that has an end, and of one that has none.
const (
	exactDigits   = 20
	roundedDigits = 10
)

// format writes a value as a decimal. One that does not end is rounded, and
// says so: ≈ 0.3333333333.
func format(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	digits, exact := r.FloatPrec()
	if exact && digits <= exactDigits {
		return r.FloatString(digits)
	}
	rounded := strings.TrimRight(strings.TrimRight(r.FloatString(roundedDigits), "0"), ".")
	if rounded == "0" || rounded == "-0" {
		return "≈ " + scientific(r)
	}
	return "≈ " + rounded
}

// scientific writes a value too small for the digits at hand.
func scientific(r *big.Rat) string {
	f := new(big.Float).SetPrec(64).SetRat(r)
	return f.Text('e', 9)
}
