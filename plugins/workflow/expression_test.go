package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestExpressions(t *testing.T) {
	t.Parallel()
	value, err := decodeJSON([]byte(`{"n":3,"s":"hi","yes":true,"list":[1,{"x":null}],"empty":""}`))
	if err != nil {
		t.Fatal(err)
	}
	look := func(r reference) (any, error) { return member(value, r.Path[1:]) }
	for text, want := range map[string]string{
		`true`: "true", `not true`: "false", `not not 1`: "true",
		`${steps.a.result.n} == 3`: "true", `${steps.a.result.n}!=3`: "false",
		`${steps.a.result.n} > 2 and ${steps.a.result.n} < 4`:  "true",
		`${steps.a.result.s} == 'hi'`:                          "true",
		`${steps.a.result.s} == "ho" or ${steps.a.result.yes}`: "true",
		`${steps.a.result.list.0} < 2`:                         "true",
		`${steps.a.result.list.1.x} == null`:                   "true",
		`${steps.a.result.empty}`:                              "false",
		`"3" == ${steps.a.result.n}`:                           "false",
		`'a' < 'b'`:                                            "true",
		`false and ${steps.a.result.missing}`:                  "false",
		`true or ${steps.a.result.missing}`:                    "true",
		`(1 < 2) and (2 > -1.5e3)`:                             "true",
		`true or false and false`:                              "true",
		`${steps.a.result.missing}`:                            `error has no member "missing"`,
		`${steps.a.result.list.9}`:                             `error is an array of 2`,
		`${steps.a.result.s} < 3`:                              `error < compares two numbers or two texts`,
		``:                                                     "error at character 1",
		`1 = 2`:                                                "error at character 3",
		`1 == `:                                                "error at character 6",
		`(1`:                                                   "error at character 3: want )",
		`'open`:                                                "error at character 1: want the closing",
		`${steps.a`:                                            "error at character 1: want } behind ${",
		`${steps.a}`:                                           "error at character 1: ${steps.a} is none of",
		`${env.HOME}`:                                          "error at character 1",
		`andy`:                                                 "error at character 1",
		`1 2`:                                                  "error at character 3: want the end",
		`system("x")`:                                          "error at character 1",
		strings.Repeat("(", 33) + "1" + strings.Repeat(")", 33): "error at character 34: want at most 32 levels",
		strings.Repeat("not ", 40) + "1":                        "error at character",
		strings.Repeat(" ", 2000):                               "error has 2000 bytes",
	} {
		got := ""
		e, err := parseExpression(text)
		if err == nil {
			var v any
			if v, err = e.eval(look); err == nil {
				got = fmt.Sprint(truth(v))
			}
		}
		if err != nil {
			got = "error " + err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%.60s: %s, want %s", text, got, want)
		}
	}
}

func FuzzExpression(f *testing.F) {
	for _, seed := range []string{`${steps.a.result.n} > 2 and not ('x' == "y" or 1 < -2)`, `((((`, `not not true`, `${steps.a.status}`, "1e999 < .", "\x00'é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := parseExpression(text)
		if err != nil {
			return
		}
		e.references(func(r reference) {
			if !isID(r.Step) {
				t.Errorf("%q refers to %q", text, r.Step)
			}
		})
		_, _ = e.eval(func(r reference) (any, error) { return float64(len(r.Path)), nil })
	})
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte(diamond))
	f.Add([]byte(chainPlan(3, `,"retry":{"times":1}`)))
	f.Add([]byte(`{"workflow_id":"w","execution_plan":{"steps":["x",null,7,{"id":"a","tool_name":"t","when":"${"}],"dependencies":{"a":["x"]}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := readPlan(raw, "flow", func(string) bool { return true })
		if err != nil {
			return
		}
		for i, r := range p.Steps {
			for _, j := range r.After {
				if j == i || j < 0 || j >= len(p.Steps) {
					t.Errorf("step %d waits for %d", i, j)
				}
			}
		}
	})
}
