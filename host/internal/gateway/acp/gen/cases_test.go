package gen

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/gateway/acp/dsl"
)

// sample is a text that is read as a type, and why it is refused; empty means it is
// accepted.
type sample struct{ typ, text, want string }

const header1 = `"version":"1.0","sender":"agentA","receiver":"agentB","type":"REQUEST","id":"msg123","timestamp":"2023-10-25T10:00:00Z","content_type":"application/json"`

const probe1 = `"id":"i","text":"t","count":1,"big":2,"ratio":0.5,"flag":true,"raw":"aGk=","mood":"GOOD","tags":["a"],"grid":[[1,2],[]],"by_name":{},"parts":[{"name":"n"}]`

// agreementText has the document's declarations, a probe of the whole language, and
// records, enums and types whose names mean something in some language.
func agreementText(t testing.TB) string {
	t.Helper()
	text := readFile(t, "testdata/document.acp") + readFile(t, "testdata/probe.acp")
	words := reservedWords()
	for i := 0; len(words) > 0; i++ {
		n := min(len(words), 100)
		text += fmt.Sprintf("type Words%d = {", i)
		for _, w := range words[:n] {
			text += w + ": String?, "
		}
		text += fmt.Sprintf("}\nenum Word%d { %s }\ntype Said%d = { word: Word%d }\n", i, strings.Join(words[:n], ", "), i, i)
		words = words[n:]
	}
	text += shadowing
	long := strings.Repeat("n", dsl.MaxName-1)
	text += "// \ufeff \u202e of \u2066 b */ \u200f\ntype Shown = { // \u202b\n a" + long + ": Int, // \u2069\n b" + long + ": { c: Int }, d: D" + long + " }\nenum D" + long + " { E" + long + " }\n"
	for i, name := range reservedTypes(text) {
		form := "type %[1]s = { of: List<%[1]s>?, as: As%[1]s? }\n@field(\"value\") type As%[1]s = String\n"
		if i%2 == 1 {
			form = "enum %[1]s { Ask%[1]s, Say%[1]s }\nsemantics Ask%[1]s expects Say%[1]s\n"
		}
		text += fmt.Sprintf(form, name)
	}
	return text
}

// shadowing has fields that are called as the functions that read and write their record.
const shadowing = `
type Order = { to_order: String, b: Int }
type M = { toM: Int?, fromM: Int? }
@open type Letter = { to_letter: String?, from_letter: String?, declared_letter: String? }
`

// large has an enum of 1,000 values and seven records of 120 fields.
func large() string {
	join := func(n int, form string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(form, i)
		}
		return strings.Join(parts, ", ")
	}
	text := "enum Large { " + join(1000, "V%d") + " }\n"
	for i := range 7 {
		text += fmt.Sprintf("type Wide%d = { large: Large, %s }\n", i, join(119, "f%d: String?"))
	}
	return text
}

// unique keeps the names that no declared one before is like.
func unique(names []string, taken ...string) (some []string) {
	seen := map[string]bool{}
	like := func(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }
	for _, name := range taken {
		seen[like(name)] = true
	}
	for _, name := range names {
		if !seen[like(name)] {
			seen[like(name)] = true
			some = append(some, name)
		}
	}
	return some
}

// reservedWords are all words that mean something in one of the languages, words of Go
// and some names in other styles among them.
func reservedWords() []string {
	all := strings.Join([]string{
		scalaKeywords, scalaMembers, javaKeywords, javaMembers, pythonKeywords, pythonMembers, pythonValues, typescriptMembers, rustKeywords,
		"func chan map range select struct go fallthrough validate UnmarshalJSON marshal_json semantics expects message reserved rpc oneof get_class to_string Some self this_ cls arguments eval delete function in_ let null_ undefined then",
	}, " ")
	return unique(strings.Fields(all))
}

func reservedTypes(declared string) []string {
	all := strings.Fields(strings.Join([]string{scalaTypes, javaTypes, pythonTypes, typescriptTypes, rustTypes, "Type None_ Self Test Main"}, " "))
	taken := []string{"String", "Int", "Long", "Float", "Boolean", "Bytes", "List", "Map", "Header", "Part", "Parts", "Empty"}
	f, err := dsl.Parse("x", declared)
	if err != nil {
		return nil
	}
	for _, it := range f.Items {
		taken = append(taken, it.Name.Text)
	}
	return unique(all, taken...)
}

// samples are about 200 texts: valid ones, each kind of faulty one, Unicode, and every
// reserved word as the name of a field and as a value.
func samples() (all []sample) {
	all = slices.Concat(messageSamples(), ownSamples(), scalarSamples(), jsonSamples(), partSamples(), randomSamples())
	all = append(all, sample{"Order", `{"to_order":"a","b":1}`, ""}, sample{"M", `{"toM":1,"fromM":2}`, ""}, sample{"Letter", `{"to_letter":"a","z":1}`, ""})
	words := reservedWords()
	for i := 0; len(words) > 0; i++ {
		n := min(len(words), 100)
		var members []string
		for _, w := range words[:n] {
			members = append(members, fmt.Sprintf("%q:%q", w, "<"+w+">"))
		}
		slices.Reverse(members)
		all = append(all, sample{fmt.Sprint("Words", i), "{" + strings.Join(members, ",") + "}", ""}, sample{fmt.Sprint("Words", i), "{}", ""},
			sample{fmt.Sprint("Words", i), `{"nope":1}`, fmt.Sprintf(`Words%d["nope"]: is not declared`, i)})
		for _, w := range words[:n:n][:min(n, 12)] {
			all = append(all, sample{fmt.Sprint("Said", i), fmt.Sprintf(`{"word":%q}`, w), ""})
		}
		words = words[n:]
	}
	return all
}

func messageSamples() (all []sample) {
	message := func(header, rest, want string) {
		all = append(all, sample{"Message", "{\"header\":{" + header + "}" + rest + "}", want})
	}
	body := `,"body":"{\"action\": \"doSomething\"}"`
	message(header1, body, "")
	message(header1+`,"reply_to":"msg122","conversation_id":"conv456"`, body, "")
	message(header1+`,"reply_to":null,"conversation_id":null`, body, "")
	message(header1+`,"x_trace":{"a":[1.50,-0,1E400,"é\u0000"],"b":null}`, body, "")
	message(header1+`,"__proto__":1,"constructor":{"prototype":2},"extra":[],"toString":"x"`, body, "")
	message(header1+`,"":true,"\"":false,"a b":" "`, body, "")
	message(header1, body+`,"more":1`, `Message["more"]: is not declared`)
	message(header1, body+`,"__proto__":1`, `Message["__proto__"]: is not declared`)
	message(header1, "", "Message.body: is missing")
	message(header1, `,"body":{}`, "Message.body: is no string")
	message(header1, `,"body":null`, "Message.body: is no string")
	message("", body, "Message.header.version: is missing")
	for _, name := range []string{"version", "sender", "receiver", "type", "id", "timestamp", "content_type"} {
		message(strings.Replace(header1, `"`+name+`"`, `"no_`+name+`"`, 1), body, "Message.header."+name+": is missing")
		want := "is no string"
		if name == "type" {
			want = "is none of REQUEST, RESPONSE, INFORM, QUERY, ACKNOWLEDGE, ERROR"
		}
		message(strings.Replace(header1, `"`+name+`":"`, `"`+name+`":7,"x":"`, 1), body, "Message.header."+name+": "+want)
	}
	for _, typ := range []string{"RESPONSE", "INFORM", "QUERY", "ACKNOWLEDGE", "ERROR"} {
		message(strings.Replace(header1, "REQUEST", typ, 1), body, "")
	}
	for _, typ := range []string{"PROPOSE", "request", "", "REQUEST ", "toString", "__proto__"} {
		message(strings.Replace(header1, "REQUEST", typ, 1), body, "Message.header.type: is none of REQUEST, RESPONSE, INFORM, QUERY, ACKNOWLEDGE, ERROR")
	}
	message(header1+`,"reply_to":7`, body, "Message.header.reply_to: is no string")
	message(header1+`,"conversation_id":[]`, body, "Message.header.conversation_id: is no string")
	for _, text := range []string{"", "é", "日本語", "😀", "\u2028\u2029", "\ufeff", "a\u0300", "\U0010ffff", "\u007f\u0080"} {
		message(header1, `,"body":"`+text+`"`, "")
	}
	for _, text := range []string{`\u00e9`, `\ud83d\ude00`, `\u0000\u001f\u007f`, `\"\\\/\b\f\n\r\t`, `\uFFFF\ufffe`, `\u2028`} {
		message(header1, `,"body":"`+text+`"`, "")
	}
	all = append(all, sample{"Message", "[]", "Message: is no object"}, sample{"Message", "null", "Message: is no object"}, sample{"Message", `"x"`, "Message: is no object"},
		sample{"Message", `{"header":[],"body":""}`, "Message.header: is no object"}, sample{"Message", `{}`, "Message.header: is missing"})
	return all
}

// ownSamples are messages with header fields that an operator has declared.
func ownSamples() (all []sample) {
	own := func(fields, want string) {
		all = append(all, sample{"OwnMessage", `{"header":{"sender":"agentA","type":"REQUEST"` + fields + `},"body":"b"}`, want})
	}
	own(`,"x_token":"t"`, "")
	own(`,"x_token":"t","x_capabilities":["ask","tell"]`, "")
	own(`,"x_token":"","x_capabilities":[],"x_color":"red"`, "")
	own(`,"x_token":"t","x_capabilities":null`, "")
	own("", "OwnMessage.header.x_token: is missing")
	own(`,"x_capabilities":["ask"]`, "OwnMessage.header.x_token: is missing")
	own(`,"x_token":null`, "OwnMessage.header.x_token: is no string")
	own(`,"x_token":7`, "OwnMessage.header.x_token: is no string")
	own(`,"x_token":"t","x_capabilities":"ask"`, "OwnMessage.header.x_capabilities: is no list")
	own(`,"x_token":"t","x_capabilities":["ask",7]`, "OwnMessage.header.x_capabilities[1]: is no string")
	return all
}

// scalarSamples are values of each built-in type.
func scalarSamples() (all []sample) {
	try := func(name, value, want string) {
		text := "{" + probe1 + "}"
		begin := strings.Index(text, `"`+name+`":`)
		end := begin + strings.IndexByte(text[begin:], ',')
		if want != "" {
			want = "Probe." + name + ": " + want
		}
		all = append(all, sample{"Probe", text[:begin] + `"` + name + `":` + value + text[end:], want})
	}
	for _, n := range []string{"0", "-0", "-1", "2147483647", "-2147483648"} {
		try("count", n, "")
		try("big", n, "")
	}
	for _, n := range []string{"2147483648", "-2147483649", "1.0", "1e2", "0.5", `"1"`, "true", "null", "[]", "99999999999999999999999999"} {
		try("count", n, "is no whole number of 32 bits")
	}
	for _, n := range []string{"9223372036854775807", "-9223372036854775808", "9007199254740993", "4294967296"} {
		try("big", n, "")
	}
	for _, n := range []string{"9223372036854775808", "-9223372036854775809", "1.0", "1e2", `"1"`} {
		try("big", n, "is no whole number of 64 bits")
	}
	for _, n := range []string{"0", "-0", "-0.0", "1", "1.0", "0.1", "1e21", "1e-7", "123456789.125", "5e-324", "1e-400", "1.7976931348623157e308", "-1.7976931348623157e+308", "-1E+2", "0.30000000000000004", "9007199254740993", "2e-3", "100000000000000000000000"} {
		try("ratio", n, "")
	}
	for _, n := range []string{"1.7976931348623159e308", "-1.7976931348623159e308", "1e309", "-1e400", `"NaN"`, `"1"`, "true", "{}"} {
		try("ratio", n, "is no number of 64 bits")
	}
	for _, b := range []string{"1", `"true"`, "null", "[]"} {
		try("flag", b, "is neither true nor false")
	}
	try("flag", "false", "")
	for _, b := range []string{`""`, `"AA=="`, `"/+8="`, `"aGVsbG8h"`, `"\u0041A=="`} {
		try("raw", b, "")
	}
	for _, b := range []string{`"A"`, `"AA"`, `"AA="`, `"AB=="`, `"AAB="`, `"A-_="`, `"AAAA\n"`, `"AA==\n"`, `"AAA=\u000a"`, `"\n"`, `"AAAA\r"`, `"AAAA\r\n"`, `"AAAA\u2028"`, `" AAAA"`, `"AAAA===="`, `"===="`, `"é==="`, "7", `"AA==AA=="`} {
		try("raw", b, "is no base64")
	}
	for _, m := range []string{`"bad"`, `"NOT_SO_GOOD"`, `"Mixed"`} {
		try("mood", m, "")
	}
	try("mood", `"BAD"`, "is none of GOOD, bad, NOT_SO_GOOD, Mixed")
	try("mood", `7`, "is none of GOOD, bad, NOT_SO_GOOD, Mixed")
	try("id", `{"id":"i"}`, "is no string")
	return all
}

// partSamples are lists, maps and records inside of others.
func partSamples() (all []sample) {
	more := func(members, want string) {
		all = append(all, sample{"Probe", "{" + probe1 + members + "}", want})
	}
	less := func(old, now, want string) {
		all = append(all, sample{"Probe", strings.Replace("{"+probe1+"}", old, now, 1), want})
	}
	more("", "")
	more(`,"share":1.5,"notes":{"a":"b","":"c","__proto__":"d","constructor":"e"},"part":{},"envelope":{"id":"e"},"empty":{}`, "")
	more(`,"share":null,"notes":null,"part":null,"envelope":null,"empty":null`, "")
	more(`,"part":{"a":1,"b":false,"c":3,"d":"","e":"bad","f":["GOOD","bad"],"g":{"k":["x","y"],"j":[]},"h":-1,"i":1e3}`, "")
	more(`,"part":{"f":[],"g":{}}`, "")
	more(`,"part":{"f":["GOOD","worse"]}`, "Probe.part.f[1]: is none of GOOD, bad, NOT_SO_GOOD, Mixed")
	more(`,"part":{"g":{"k\"\n é":["x",1]}}`, `Probe.part.g["k\"\n é"][1]: is no string`)
	more(`,"part":{"d":"?"}`, "Probe.part.d: is no base64")
	more(`,"part":{"z":1}`, `Probe.part["z"]: is not declared`)
	more(`,"part":[]`, "Probe.part: is no object")
	more(`,"notes":[]`, "Probe.notes: is no object")
	more(`,"notes":{"a":1}`, `Probe.notes["a"]: is no string`)
	more(`,"notes":{"a":null}`, `Probe.notes["a"]: is no string`)
	more(`,"empty":{"a":1}`, `Probe.empty["a"]: is not declared`)
	more(`,"envelope":{"id":"1","child":{"id":"2","child":{"id":"3","x":[{}]},"y":{"z":"w"}}}`, "")
	more(`,"envelope":{"id":"1","child":{"child":{}}}`, "Probe.envelope.child.id: is missing")
	more(`,"envelope":{"id":"1","child":{"id":"2","child":{"id":3}}}`, "Probe.envelope.child.child.id: is no string")
	less(`"tags":["a"]`, `"tags":[]`, "")
	less(`"tags":["a"]`, `"tags":["a",1]`, "Probe.tags[1]: is no string")
	less(`"tags":["a"]`, `"tags":[null]`, "Probe.tags[0]: is no string")
	less(`"tags":["a"]`, `"tags":"a"`, "Probe.tags: is no list")
	less(`"tags":["a"]`, `"tags":{}`, "Probe.tags: is no list")
	less(`"tags":["a"],`, ``, "Probe.tags: is missing")
	less(`"tags":["a"]`, `"tags":null`, "Probe.tags: is no list")
	less(`[[1,2],[]]`, `[]`, "")
	less(`[[1,2],[]]`, `[[1],[2,"x"]]`, "Probe.grid[1][1]: is no whole number of 32 bits")
	less(`[[1,2],[]]`, `[1]`, "Probe.grid[0]: is no list")
	less(`{"name":"n"}`, `{"name":"n"},{"name":"m"}`, "")
	less(`{"name":"n"}`, `{"name":"n"},{}`, "Probe.parts[1].name: is missing")
	less(`"by_name":{}`, `"by_name":{"b":{`+probe1+`},"a":{`+probe1+`}}`, "")
	less(`"by_name":{}`, `"by_name":{"b":{`+probe1+`},"a":{}}`, `Probe.by_name["a"].id: is missing`)
	return all
}

// jsonSamples are texts at the edges of JSON.
func jsonSamples() (all []sample) {
	try := func(text, want string) { all = append(all, sample{"Envelope", text, want}) }
	for _, text := range []string{
		"", " ", "{", "}", `{"id"}`, `{"id":}`, `{"id":"i",}`, `{,"id":"i"}`, `{"id":"i"} x`, `{"id":"i"}{}`, `{'id':"i"}`, `{id:"i"}`, "{\"id\":\"a\nb\"}", "{\"id\":\"a\tb\"}", `{"id":"\x41"}`, `{"id":"\u12"}`, `{"id":"\u12g4"}`,
		`{"id":"i","x":01}`, `{"id":"i","x":+1}`, `{"id":"i","x":.5}`, `{"id":"i","x":1.}`, `{"id":"i","x":1e}`, `{"id":"i","x":-}`, `{"id":"i","x":NaN}`, `{"id":"i","x":Infinity}`, `{"id":"i","x":tru}`, `{"id":"i","x":[1,]}`, `{"id":"i","x":[1 2]}`,
		`{"id":"i","x":nul}`, `{"id":"i"/*c*/}`, "\ufeff{\"id\":\"i\"}", "{\"id\":\"i\"}\u00a0", `{"id":"i`, `{"id":"i\`, `["`, `{"id":"i","x":0x1}`, `{"id":"i","x":1_0}`, `{"id":"\u+123"}`, `{"id":"i","x":٣}`,
	} {
		try(text, "the text is no JSON")
	}
	for _, text := range []string{`{"id":"\ud800"}`, `{"id":"\udc00"}`, `{"id":"\ud800\u0041"}`, `{"id":"\ud800x"}`, `{"id":"i","\udfff":1}`, `{"id":"i","x":"\ud83d\ud83d\ude00"}`} {
		try(text, "the text has an unpaired surrogate")
	}
	for _, text := range []string{`{"id":"i","id":"i"}`, `{"id":"i","\u0069d":"j"}`, `{"id":"i","x":{"a":1,"b":2,"a":3}}`, `{"id":"i","__proto__":1,"__proto__":2}`} {
		try(text, "the text has a member twice")
	}
	try("{\"id\":\"\xff\"}", "the text is not UTF-8")
	try("{\"id\":\"\xed\xa0\x80\"}", "the text is not UTF-8")
	try("{\"id\":\"\xc0\x80\"}", "the text is not UTF-8")
	try(" \t\r\n{ \"id\" : \"i\" , \"x\" : [ ] , \"y\" : { } } \n", "")
	try(`{"id":"i","x":`+strings.Repeat("[", 63)+strings.Repeat("]", 63)+`}`, "")
	try(`{"id":"i","x":`+strings.Repeat("[", 64)+strings.Repeat("]", 64)+`}`, "the text is nested deeper than 64")
	try(strings.Repeat(`{"id":"i","child":`, 63)+`{"id":"i"}`+strings.Repeat("}", 63), "")
	try(strings.Repeat(`{"id":"i","child":`, 64)+`{"id":"i"}`+strings.Repeat("}", 64), "the text is nested deeper than 64")
	try(strings.Repeat("[", 500_000), "the text is nested deeper than 64")
	try(`{"id":"`+strings.Repeat("x", 1<<20-9)+`"}`, "")
	try(`{"id":"`+strings.Repeat("x", 1<<20-8)+`"}`, "the text has more than 1048576 bytes")
	try(`{"id":"`+strings.Repeat("é", 1<<19-4)+`"}`, "the text has more than 1048576 bytes")
	try(`{"id":"i","x":[-0,0.10,1E5,1e+05,12345678901234567890]}`, "")
	return all
}

// randomSamples are messages with random texts, optional fields, and members that are not
// declared. They are the same in each run.
func randomSamples() (all []sample) {
	for seed := range uint64(24) {
		g := textGrower{rand.New(rand.NewPCG(seed, 2))}
		header := header1
		for _, optional := range []string{"reply_to", "conversation_id"} {
			if g.IntN(2) == 0 {
				header += fmt.Sprintf(",%q:%s", optional, g.text())
			}
		}
		for i := range g.IntN(3) {
			header += fmt.Sprintf(`,"x_%d":%s`, i, g.value(3))
		}
		all = append(all, sample{"Message", fmt.Sprintf(`{"body":%s,"header":{%s}}`, g.text(), header), ""})
	}
	return all
}

// textGrower makes random JSON.
type textGrower struct{ *rand.Rand }

func (g textGrower) text() string {
	runes := []rune("aZ09 _-\"\\/\u0000\n\u007fé\u0300日\u2028\ufeff\uffff😀")
	var b strings.Builder
	for range g.IntN(20) {
		b.WriteRune(runes[g.IntN(len(runes))])
	}
	raw, _ := json.Marshal(b.String()) // a text
	return string(raw)
}

func (g textGrower) value(depth int) string {
	plain := []string{"null", "true", "-0", "1.50", "12345678901234567890", "1E-400", g.text()}
	var parts []string
	n := g.IntN(len(plain) + 2*min(depth, 1))
	switch {
	case n < len(plain):
		return plain[n]
	case n == len(plain):
		for range g.IntN(3) {
			parts = append(parts, g.value(depth-1))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	for i := range g.IntN(3) {
		parts = append(parts, fmt.Sprintf(`"k%d":%s`, i, g.value(depth-1)))
	}
	return "{" + strings.Join(parts, ",") + "}"
}
