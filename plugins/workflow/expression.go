package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Bounds of an expression: its bytes, and how deep its parentheses and nots go.
const (
	maxExpression = 1 << 10
	maxNesting    = 32
)

// expression is a parsed condition, as in ${steps.a.result.total} > 3 and not false.
type expression struct {
	op          string // or, and, not, ==, !=, <, >, value or ref
	left, right *expression
	value       any
	ref         reference
}

// parser reads an expression.
type parser struct {
	text  string
	at    int
	depth int
}

// parseExpression reads a condition. Its error says where and why.
func parseExpression(text string) (*expression, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("has %d bytes, at most %d", len(text), maxExpression)
	}
	p := &parser{text: text}
	e, err := p.or()
	if err == nil && p.peek() != "" {
		err = p.fail("the end, and, or, a comparison")
	}
	return e, err
}

func (p *parser) fail(want string) error {
	return fmt.Errorf("at character %d: want %s", p.at+1, want)
}

// peek returns the next token without its value: a word, an operator, or the first
// character of a value.
func (p *parser) peek() string {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
	rest := p.text[p.at:]
	for _, token := range []string{"==", "!=", "${"} {
		if strings.HasPrefix(rest, token) {
			return token
		}
	}
	if n := wordLength(rest); n > 0 {
		return rest[:n]
	}
	return rest[:min(1, len(rest))]
}

// wordLength is the length of the letters that a text begins with.
func wordLength(s string) int {
	return len(s) - len(strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"))
}

// takeToken passes over a token if it is the next.
func (p *parser) takeToken(token string) bool {
	if p.peek() != token {
		return false
	}
	p.at += len(token)
	return true
}

func (p *parser) or() (*expression, error) { return p.chain("or", p.and) }

func (p *parser) and() (*expression, error) { return p.chain("and", p.not) }

// chain reads operands that a word joins.
func (p *parser) chain(word string, operand func() (*expression, error)) (*expression, error) {
	left, err := operand()
	for err == nil && p.takeToken(word) {
		var right *expression
		right, err = operand()
		left = &expression{op: word, left: left, right: right}
	}
	return left, err
}

func (p *parser) not() (*expression, error) {
	if !p.takeToken("not") {
		return p.comparison()
	}
	if p.depth++; p.depth > maxNesting {
		return nil, p.fail(fmt.Sprintf("at most %d levels", maxNesting))
	}
	defer func() { p.depth-- }()
	e, err := p.not()
	return &expression{op: "not", left: e}, err
}

func (p *parser) comparison() (*expression, error) {
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	for _, op := range []string{"==", "!=", "<", ">"} {
		if p.takeToken(op) {
			right, err := p.operand()
			return &expression{op: op, left: left, right: right}, err
		}
	}
	return left, nil
}

func (p *parser) operand() (*expression, error) {
	switch token := p.peek(); {
	case p.takeToken("("):
		if p.depth++; p.depth > maxNesting {
			return nil, p.fail(fmt.Sprintf("at most %d levels", maxNesting))
		}
		defer func() { p.depth-- }()
		e, err := p.or()
		if err == nil && !p.takeToken(")") {
			err = p.fail(")")
		}
		return e, err
	case token == "${":
		return p.reference()
	case token == `"` || token == "'":
		return p.quoted(token)
	case p.takeToken("true"), p.takeToken("false"):
		return &expression{op: "value", value: token == "true"}, nil
	case p.takeToken("null"):
		return &expression{op: "value"}, nil
	}
	return p.number()
}

func (p *parser) reference() (*expression, error) {
	end := strings.IndexByte(p.text[p.at:], '}')
	if end < 0 {
		return nil, p.fail("} behind ${")
	}
	ref, err := parseReference(p.text[p.at+2 : p.at+end])
	if err != nil {
		return nil, fmt.Errorf("at character %d: %w", p.at+1, err)
	}
	p.at += end + 1
	return &expression{op: "ref", ref: ref}, nil
}

func (p *parser) quoted(quote string) (*expression, error) {
	end := strings.Index(p.text[p.at+1:], quote)
	if end < 0 {
		return nil, p.fail("the closing " + quote)
	}
	value := p.text[p.at+1 : p.at+1+end]
	p.at += end + 2
	return &expression{op: "value", value: value}, nil
}

func (p *parser) number() (*expression, error) {
	rest := p.text[p.at:]
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789+-.eE"))]
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return nil, p.fail(`${steps.ID.result}, a number, a text in quotes, true, false, null, not or (`)
	}
	p.at += len(digits)
	return &expression{op: "value", value: n}, nil
}

// references calls each for all references of an expression.
func (e *expression) references(each func(reference)) {
	if e == nil {
		return
	}
	if e.op == "ref" {
		each(e.ref)
	}
	e.left.references(each)
	e.right.references(each)
}

// eval computes an expression; look finds the value of a reference.
func (e *expression) eval(look func(reference) (any, error)) (any, error) {
	switch e.op {
	case "value":
		return e.value, nil
	case "ref":
		return look(e.ref)
	}
	left, err := e.left.eval(look)
	if err != nil {
		return nil, err
	}
	switch e.op {
	case "not":
		return !truth(left), nil
	case "and", "or":
		if truth(left) == (e.op == "or") {
			return e.op == "or", nil
		}
		right, err := e.right.eval(look)
		return truth(right), err
	}
	right, err := e.right.eval(look)
	if err != nil {
		return nil, err
	}
	return compare(e.op, left, right)
}

// truth: null, false, 0, "" and what is empty are false.
func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// compare compares two values. Only numbers and texts have an order.
func compare(op string, left, right any) (bool, error) {
	if op == "==" || op == "!=" {
		a, _ := json.Marshal(left) // values that came as JSON
		b, _ := json.Marshal(right)
		return (string(a) == string(b)) == (op == "=="), nil
	}
	if a, ok := left.(float64); ok {
		if b, ok := right.(float64); ok {
			return op == "<" && a < b || op == ">" && a > b, nil
		}
	}
	if a, ok := left.(string); ok {
		if b, ok := right.(string); ok {
			return op == "<" && a < b || op == ">" && a > b, nil
		}
	}
	return false, fmt.Errorf("%s compares two numbers or two texts", op)
}
