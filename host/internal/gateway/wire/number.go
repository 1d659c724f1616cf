package wire

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// maxPlain is how many digits an integer has that every double holds.
const maxPlain = 15

// number reads a number and writes it.
func (c *canonicalizer) number() error {
	start := c.at
	negative := c.skip('-', '-')
	zero := c.skip('0', '0')
	if !zero && !c.digits() {
		return errNotJSON
	}
	whole := c.at
	if c.skip('.', '.') && !c.digits() {
		return errNotJSON
	}
	if c.skip('e', 'E') {
		c.skip('+', '-')
		if !c.digits() {
			return errNotJSON
		}
	}
	literal := c.text[start:c.at]
	if c.form == AsSent || c.at == whole && len(literal) <= maxPlain && !(negative && zero) {
		c.out = append(c.out, literal...)
		return nil
	}
	f, err := strconv.ParseFloat(string(literal), 64)
	if err != nil {
		return fmt.Errorf("has the number %.40s, which is too large for a double", literal)
	}
	c.out = appendNumber(c.out, f)
	return nil
}

// skip skips one of two bytes.
func (c *canonicalizer) skip(one, other byte) bool {
	if c.at < len(c.text) && (c.text[c.at] == one || c.text[c.at] == other) {
		c.at++
		return true
	}
	return false
}

// digits skips one digit or more.
func (c *canonicalizer) digits() bool {
	start := c.at
	for c.at < len(c.text) && isDigit(c.text[c.at]) {
		c.at++
	}
	return c.at > start
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// appendNumber writes a number as ECMAScript does
// (https://tc39.es/ecma262/#sec-numeric-types-number-tostring).
func appendNumber(out []byte, f float64) []byte {
	if f == 0 {
		return append(out, '0') // also where it is negative
	}
	if size := math.Abs(f); size >= 1e-6 && size < 1e21 {
		return strconv.AppendFloat(out, f, 'f', -1, 64)
	}
	text := strconv.AppendFloat(nil, f, 'e', -1, 64)
	for _, sign := range []string{"e-", "e+"} { // exponents have no leading zero
		text = bytes.Replace(text, []byte(sign+"0"), []byte(sign), 1)
	}
	return append(out, text...)
}
