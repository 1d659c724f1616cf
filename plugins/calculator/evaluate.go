package main

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"
)

// Bounds that keep one expression from using up the turn.
const (
	maxDepth    = 200  // nested parentheses and signs
	maxExponent = 4096 // either sign
	maxBits     = 1 << 14
)

var errTooLarge = errors.New("the numbers become too large")

// evaluate works out an expression. The grammar, loosest first:
//
//	sum     = product { ("+" | "-") product }
//	product = signed { ("*" | "/" | "%") signed }
//	signed  = ("+" | "-") signed | power
//	power   = atom [ "^" signed ]
//	atom    = number | "(" sum ")"
//
// So -2^2 is -4 and 2^3^2 is 512. The remainder of a%b has the sign of b.
func evaluate(expression string) (*big.Rat, error) {
	p := &parser{rest: normal.Replace(expression)}
	value, err := p.sum()
	if err != nil {
		return nil, err
	}
	if c := p.peek(); c != 0 {
		return nil, fmt.Errorf("unexpected %q", firstRune(p.rest))
	}
	return value, nil
}

// normal turns the signs people write into the ones of the grammar.
var normal = strings.NewReplacer("×", "*", "·", "*", "÷", "/", "−", "-", "–", "-", "**", "^", "_", "")

// parser reads an expression from left to right.
type parser struct {
	rest  string
	depth int
}

// peek returns the next byte that is no space, or 0 at the end.
func (p *parser) peek() byte {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func (p *parser) sum() (*big.Rat, error) { return p.chain("+-", p.product) }

func (p *parser) product() (*big.Rat, error) { return p.chain("*/%", p.signed) }

// chain reads operands joined by operators of one strength, from the left.
func (p *parser) chain(operators string, operand func() (*big.Rat, error)) (*big.Rat, error) {
	value, err := operand()
	for err == nil {
		operator := p.peek()
		if operator == 0 || !strings.ContainsRune(operators, rune(operator)) {
			return value, nil
		}
		p.rest = p.rest[1:]
		var right *big.Rat
		if right, err = operand(); err == nil {
			value, err = apply(operator, value, right)
		}
	}
	return nil, err
}

func (p *parser) signed() (*big.Rat, error) {
	sign := p.peek()
	if sign != '-' && sign != '+' {
		return p.power()
	}
	p.rest = p.rest[1:]
	value, err := p.deeper(p.signed)
	if err == nil && sign == '-' {
		value.Neg(value)
	}
	return value, err
}

func (p *parser) power() (*big.Rat, error) {
	base, err := p.atom()
	if err != nil || p.peek() != '^' {
		return base, err
	}
	p.rest = p.rest[1:]
	exponent, err := p.deeper(p.signed)
	if err != nil {
		return nil, err
	}
	return raise(base, exponent)
}

func (p *parser) atom() (*big.Rat, error) {
	switch c := p.peek(); {
	case c == 0:
		return nil, errors.New("something is missing at the end")
	case c == '(':
		p.rest = p.rest[1:]
		value, err := p.deeper(p.sum)
		if err != nil {
			return nil, err
		}
		if p.peek() != ')' {
			return nil, errors.New("a closing parenthesis is missing")
		}
		p.rest = p.rest[1:]
		return value, nil
	case c == '.' || c >= '0' && c <= '9':
		return p.number()
	}
	return nil, fmt.Errorf("unexpected %q", firstRune(p.rest))
}

func (p *parser) number() (*big.Rat, error) {
	end := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789."))
	text := p.rest[:end]
	p.rest = p.rest[end:]
	value, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("%q is no number", text)
	}
	return checked(value)
}

// deeper reads something nested.
func (p *parser) deeper(read func() (*big.Rat, error)) (*big.Rat, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	return read()
}

func apply(operator byte, a, b *big.Rat) (*big.Rat, error) {
	if b.Sign() == 0 && (operator == '/' || operator == '%') {
		return nil, errors.New("division by zero")
	}
	value := new(big.Rat)
	switch operator {
	case '+':
		value.Add(a, b)
	case '-':
		value.Sub(a, b)
	case '*':
		value.Mul(a, b)
	case '/':
		value.Quo(a, b)
	case '%':
		value.Sub(a, value.Mul(b, floor(new(big.Rat).Quo(a, b))))
	}
	return checked(value)
}

func floor(r *big.Rat) *big.Rat {
	whole, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() < 0 {
		whole.Sub(whole, big.NewInt(1))
	}
	return new(big.Rat).SetInt(whole)
}

// raise works out a power with a whole exponent.
func raise(base, exponent *big.Rat) (*big.Rat, error) {
	if !exponent.IsInt() || !exponent.Num().IsInt64() || abs(exponent.Num().Int64()) > maxExponent {
		return nil, fmt.Errorf("an exponent must be a whole number from %d to %d", -maxExponent, maxExponent)
	}
	n := exponent.Num().Int64()
	if n < 0 && base.Sign() == 0 {
		return nil, errors.New("division by zero")
	}
	if abs(n)*int64(base.Num().BitLen()+base.Denom().BitLen()) > 4*maxBits {
		return nil, errTooLarge
	}
	k := big.NewInt(abs(n))
	value := new(big.Rat).SetFrac(new(big.Int).Exp(base.Num(), k, nil), new(big.Int).Exp(base.Denom(), k, nil))
	if n < 0 {
		value.Inv(value)
	}
	return checked(value)
}

func abs(n int64) int64 { return max(n, -n) }

func checked(r *big.Rat) (*big.Rat, error) {
	if r.Num().BitLen() > maxBits || r.Denom().BitLen() > maxBits {
		return nil, errTooLarge
	}
	return r, nil
}

func firstRune(s string) string {
	_, size := utf8.DecodeRuneInString(s)
	return s[:size]
}
