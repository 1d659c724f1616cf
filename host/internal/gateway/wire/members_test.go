package wire_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"

	"skep/host/internal/gateway/wire"
)

// TestMembers: members and items as they stand in a text, texts decoded.
func TestMembers(t *testing.T) {
	t.Parallel()
	const text = " {\"a\" : {\"}\":[\"]\"]} , \"\\u0062\\\\\":[1 , \"\\\\\\\"\" ],\t\"\":-1.5e3\n,\"d\":\"\" } "
	all, ok := wire.Members([]byte(text))
	want := map[string]json.RawMessage{"a": []byte(`{"}":["]"]}`), `b\`: []byte(`[1 , "\\\"" ]`), "": []byte("-1.5e3"), "d": []byte(`""`)}
	if !ok || !reflect.DeepEqual(all, want) {
		t.Errorf("%s, %t", all, ok)
	}
	items, ok := wire.Items(all[`b\`])
	if want := []json.RawMessage{[]byte("1"), []byte(`"\\\""`)}; !ok || !reflect.DeepEqual(items, want) {
		t.Errorf("%s, %t", items, ok)
	}
	for raw, want := range map[string]string{`"\\\""`: `\"`, `"a\n\ud83d\ude00\/b"`: "a\n😀/b", `""`: ""} {
		if got, ok := wire.Text([]byte(raw)); !ok || got != want {
			t.Errorf("%s: %q, %t", raw, got, ok)
		}
	}
	for _, other := range []string{"", "null", "5", `"`, `"{"`, "[1]", `{"a"}`, `{"a":}`, `{1:2}`, "{", `{"a":1`} {
		if all, ok := wire.Members([]byte(other)); ok {
			t.Errorf("%s is taken for the object %s", other, all)
		}
		if text, ok := wire.Text([]byte(other)); ok && other != `"{"` {
			t.Errorf("%s is taken for the text %q", other, text)
		}
	}
	for _, other := range []string{"", "null", `"[]"`, "{}", "[", "[1", "[,"} {
		if items, ok := wire.Items([]byte(other)); ok {
			t.Errorf("%s is taken for the list %s", other, items)
		}
	}
}

// FuzzMembers compares what is read of a text that has a canonical form with package json.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{`{"a":{"b":[1,"\"]"]},"c":"\\"}`, `[[],{}, "x\u0041" ,null,-0.1e+5]`, `"\ud83d\ude00"`, ` 5 `, `{"":{"":""}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, isObject := wire.Members(text)
		items, isList := wire.Items(text)
		decoded, isText := wire.Text(text)
		if _, err := wire.Canonical(text, wire.AsSent, 100); err != nil {
			return // nothing but an end is asked for
		}
		var wantAll map[string]json.RawMessage
		if json.Unmarshal(text, &wantAll) == nil && wantAll != nil && (!isObject || !maps.EqualFunc(all, wantAll, equalRaw)) {
			t.Fatalf("%q: %q, %t; want %q", text, all, isObject, wantAll)
		}
		var wantItems []json.RawMessage
		if json.Unmarshal(text, &wantItems) == nil && wantItems != nil && (!isList || len(items) != len(wantItems)) {
			t.Fatalf("%q: %q, %t; want %q", text, items, isList, wantItems)
		}
		for i, want := range wantItems {
			if !equalRaw(items[i], want) {
				t.Fatalf("%q: %q; want %q", text, items, wantItems)
			}
		}
		var want string
		if text[0] == '"' && text[len(text)-1] == '"' && json.Unmarshal(text, &want) == nil && (!isText || decoded != want) {
			t.Fatalf("%q: %q, %t", text, decoded, isText)
		}
	})
}

func equalRaw(a, b json.RawMessage) bool { return string(a) == string(b) }

// TestEachMember: members are yielded as they stand in a text, those before the end for what
// is no object.
func TestEachMember(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1,"b":[1,{"c":"]"}],"d":"\"}"}`: `"a"=1 "b"=[1,{"c":"]"}] "d"="\"}"`,
		`{"a":1,"a":null,"\u0061":true}`:      `"a"=1 "a"=null "\u0061"=true`,
		`{"a":1`:                              `"a"=1`,
		`{"a":"1,"b":2}`:                      `"a"="1,"b":2}`,
		`{"a":[1,"b":2}`:                      `"a"=[1,"b":2}`,
		`{"a":"\`:                             `"a"="\`,
		`{"a" 1}`:                             ``,
		`{}`:                                  ``,
		`[1,2]`:                               ``,
		``:                                    ``,
	} {
		var got []string
		for name, value := range wire.EachMember([]byte(text)) {
			got = append(got, string(name)+"="+string(value))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has %q, want %s", text, got, want)
		}
	}
}
