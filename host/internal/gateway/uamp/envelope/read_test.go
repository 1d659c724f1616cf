package envelope_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/wire"
)

var (
	reader = envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 16}
	strict = envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 16, Strict: true}
)

// minimal are the members of an envelope that has only what it must have.
func minimal() map[string]string {
	return map[string]string{
		"id": `"urn:uuid:7d3e3f0e-6b2f-4a5d-9b1e-1c2d3e4f5a6b"`, "ts": `"2025-07-10T10:00:00Z"`, "from": `"did:web:client.example"`,
		"to": `["did:web:calc.example"]`, "intent": `"ask"`, "body": `{"type":"text/plain","content":"2+2"}`, "sig": `"x..y"`,
	}
}

// text writes members, some of them changed; an empty value takes a member out.
func text(changes map[string]string) string {
	members := minimal()
	for name, value := range changes {
		members[name] = value
	}
	var parts []string
	for name, value := range members {
		if value != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", name, value))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// codeOf is the code of a refusal, empty for none.
func codeOf(t *testing.T, err error) envelope.Code {
	t.Helper()
	if err == nil {
		return ""
	}
	var f *envelope.Fault
	if !errors.As(err, &f) {
		t.Fatalf("%v is no fault", err)
	}
	return f.Code
}

// TestRead (V-U12, V-U13, U-001–U-014, U-106, D-U1, D-U2): what the schema of appendix A.1
// takes and refuses.
func TestRead(t *testing.T) {
	t.Parallel()
	const both, lenient = 2, 1
	hash := "sha256:" + strings.Repeat("0", 64)
	type change = map[string]string
	for name, c := range map[string]struct {
		change change
		takes  int // profiles that take it
	}{
		"minimal":            {change{}, both},
		"all":                {change{"reply_to": `"urn:uuid:7d3e3f0e-6b2f-4a5d-9b1e-1c2d3e4f5a6c"`, "context": `[{"id":"urn:uuid:7d3e3f0e-6b2f-4a5d-9b1e-1c2d3e4f5a6c","hash":"` + hash + `"}]`, "stream_id": `"str-42"`, "delta_window": `64`, "cap_token": `"eyJ"`, "ext": `{"x-trace":"b3:1"}`}, both},
		"no id":              {change{"id": ""}, 0},
		"no ts":              {change{"ts": ""}, 0},
		"no from":            {change{"from": ""}, 0},
		"no to":              {change{"to": ""}, 0},
		"no intent":          {change{"intent": ""}, 0},
		"no body":            {change{"body": ""}, 0},
		"no sig":             {change{"sig": ""}, 0},
		"null id":            {change{"id": "null"}, 0},
		"other property":     {change{"subject": `"x"`}, 0},
		"name in capitals":   {change{"ID": `"urn:uuid:7d3e3f0e-6b2f-4a5d-9b1e-1c2d3e4f5a6b"`}, 0},
		"bare UUID":          {change{"id": `"7d3e3f0e-6b2f-4a5d-9b1e-1c2d3e4f5a6b"`}, both},
		"UUID of version 1":  {change{"id": `"urn:uuid:7d3e3f0e-6b2f-1a5d-9b1e-1c2d3e4f5a6b"`}, lenient},
		"id of the examples": {change{"id": `"urn:uuid:imgreq"`}, lenient},
		"reply to such":      {change{"reply_to": `"urn:uuid:1111"`}, lenient},
		"id with a slash":    {change{"id": `"urn:uuid:a/b"`}, 0},
		"id too long":        {change{"id": `"urn:uuid:` + strings.Repeat("a", 65) + `"`}, 0},
		"bare name":          {change{"id": `"imgreq"`}, 0},
		"no name":            {change{"id": `"urn:uuid:"`}, 0},
		"time with offset":   {change{"ts": `"2025-07-10T12:00:00+02:00"`}, lenient},
		"time with fraction": {change{"ts": `"2025-07-10T10:00:00.123Z"`}, both},
		"time in small":      {change{"ts": `"2025-07-10t10:00:00z"`}, lenient},
		"stream is a dot":    {change{"stream_id": `"."`}, 0},
		"stream is two dots": {change{"stream_id": `".."`}, 0},
		"stream has dots":    {change{"stream_id": `"..."`}, both},
		"hops":               {change{"ext": `{"x-hops":3}`}, both},
		"hops in a string":   {change{"ext": `{"x-hops":"3"}`}, both},
		"hops too many":      {change{"ext": `{"x-hops":1e30}`}, 0},
		"hops of 31 digits":  {change{"ext": `{"x-hops":1000000000000000000000000000000}`}, 0},
		"hops below 0":       {change{"ext": `{"x-hops":-1}`}, 0},
		"half a hop":         {change{"ext": `{"x-hops":1.5}`}, 0},
		"hops of letters":    {change{"ext": `{"x-hops":"x"}`}, 0},
		"hops are null":      {change{"ext": `{"x-hops":null}`}, 0},
		"time without zone":  {change{"ts": `"2025-07-10T10:00:00"`}, 0},
		"hour of one digit":  {change{"ts": `"2025-07-10T1:00:00Z"`}, 0},
		"before year 1":      {change{"ts": `"0001-01-01T00:00:00+23:59"`}, 0},
		"time as number":     {change{"ts": `1752141600`}, 0},
		"single label":       {change{"from": `"did:web:client"`}, both},
		"https sender":       {change{"from": `"https://client.example/agent"`}, both},
		"no URI":             {change{"from": `"client"`}, 0},
		"URI with blank":     {change{"from": `"did:web:a b"`}, 0},
		"to is empty":        {change{"to": `[]`}, 0},
		"to is a string":     {change{"to": `"did:web:calc.example"`}, 0},
		"to has a number":    {change{"to": `["did:web:calc.example",1]`}, 0},
		"two recipients":     {change{"to": `["did:web:calc.example","did:web:other.example"]`}, both},
		"bad intent":         {change{"intent": `"request"`}, 0},
		"intent in capitals": {change{"intent": `"ASK"`}, 0},
		"hash in capitals":   {change{"context": `[{"id":"urn:uuid:7d3e3f0e-6b2f-4a5d-9b1e-1c2d3e4f5a6c","hash":"sha256:` + strings.Repeat("A", 64) + `"}]`}, 0},
		"hash too short":     {change{"context": `[{"id":"urn:uuid:7d3e3f0e-6b2f-4a5d-9b1e-1c2d3e4f5a6c","hash":"sha256:00"}]`}, 0},
		"context without id": {change{"context": `[{"hash":"` + hash + `"}]`}, 0},
		"context extra":      {change{"context": `[{"id":"urn:uuid:7d3e3f0e-6b2f-4a5d-9b1e-1c2d3e4f5a6c","hash":"` + hash + `","x":1}]`}, both},
		"context of texts":   {change{"context": `["x"]`}, 0},
		"empty stream":       {change{"stream_id": `""`}, 0},
		"stream of control":  {change{"stream_id": `"a\nb"`}, 0},
		"window 0":           {change{"delta_window": `0`}, 0},
		"window 1":           {change{"delta_window": `1`}, both},
		"window 64.0":        {change{"delta_window": `64.0`}, both},
		"window 1.5":         {change{"delta_window": `1.5`}, 0},
		"window text":        {change{"delta_window": `"64"`}, 0},
		"body without type":  {change{"body": `{"content":"x"}`}, 0},
		"body no content":    {change{"body": `{"type":"text/plain"}`}, 0},
		"content an object":  {change{"body": `{"type":"application/json","content":{}}`}, 0},
		"body extra":         {change{"body": `{"type":"text/plain","content":"","x":1}`}, both},
		"body of the seed":   {change{"body": `{"type":"text/markdown","content":"x","encoding":"utf-8","compression":"none"}`}, both},
		"ext a list":         {change{"ext": `[]`}, 0},
		"token an object":    {change{"cap_token": `{}`}, 0},
		"sig an object":      {change{"sig": `{}`}, 0},
		"sig a number":       {change{"sig": `1`}, 0},
		"inform":             {change{"intent": `"inform"`}, both},
		"propose":            {change{"intent": `"propose"`}, both},
		"confirm":            {change{"intent": `"confirm"`}, both},
		"deny":               {change{"intent": `"deny"`}, both},
		"progress":           {change{"intent": `"progress"`}, both},
		"cancel":             {change{"intent": `"cancel"`}, both},
		"subscribe":          {change{"intent": `"subscribe"`}, both},
		"notify":             {change{"intent": `"notify"`}, both},
		"error":              {change{"intent": `"error"`}, both},
	} {
		for profile, r := range map[int]envelope.Reader{lenient: reader, both: strict} {
			_, err := r.Read([]byte(text(c.change)))
			if want := c.takes >= profile; (codeOf(t, err) == "") != want || !want && codeOf(t, err) != envelope.Malformed {
				t.Errorf("%s, strict %v: %v", name, r.Strict, err)
			}
		}
	}
}

// TestReadRefusesText (G-057, V-U10, V-U11, V-U34): what has no or several readings, is
// too deep or too large is refused before its members are read.
func TestReadRefusesText(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 20) + strings.Repeat("]", 20)
	for text, want := range map[string]envelope.Code{
		`{`:   envelope.Malformed,
		`[]`:  envelope.Malformed,
		`"x"`: envelope.Malformed,
		strings.TrimSuffix(text(nil), "}") + `,"to":["did:web:other.example"]}`: envelope.Malformed,
		text(map[string]string{"ext": `{"a":"\ud800"}`}):                        envelope.Malformed,
		text(map[string]string{"ext": `{"a":` + deep + `}`}):                    envelope.Malformed,
		text(map[string]string{"ext": `{"a":"` + "\xff" + `"}`}):                envelope.Malformed,
		strings.Repeat(" ", 1<<20) + text(nil):                                  envelope.TooLarge,
	} {
		if _, err := reader.Read([]byte(text)); codeOf(t, err) != want {
			t.Errorf("%.80s: %v, want %s", text, err, want)
		}
	}
}

// TestValues (U-005, U-009, U-010, U-011): what was read, with the document's defaults,
// and the id of a refusal.
func TestValues(t *testing.T) {
	t.Parallel()
	s, err := reader.Read([]byte(text(map[string]string{"id": `"URN:UUID:7D3E3F0E-6b2f-4a5d-9b1e-1c2d3e4f5a6b"`, "to": `["did:web:a.example","did:web:b.example","did:web:a.example"]`})))
	if err != nil {
		t.Fatal(err)
	}
	want := envelope.Body{Type: "text/plain", Content: "2+2", Encoding: "utf-8", Compression: "none"}
	if s.ID != "7d3e3f0e-6b2f-4a5d-9b1e-1c2d3e4f5a6b" || s.Window != envelope.DefaultWindow || s.Body != want || fmt.Sprint(s.Recipients()) != "[did:web:a.example did:web:b.example]" || !s.Time.Equal(time.Date(2025, 7, 10, 10, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", s.Envelope)
	}
	s, err = reader.Read([]byte(text(map[string]string{"intent": `"request"`})))
	if err == nil || s.ID != "7d3e3f0e-6b2f-4a5d-9b1e-1c2d3e4f5a6b" || s.From != "did:web:client.example" {
		t.Errorf("%+v, %v", s.Envelope, err)
	}
}

// TestWrittenAsRead (U-002, U-003, D-U1): an envelope of ours is one in the strict
// profile, and reads as it was.
func TestWrittenAsRead(t *testing.T) {
	t.Parallel()
	e := envelope.Envelope{
		ID: envelope.NewID(), Time: time.Date(2025, 7, 10, 10, 0, 0, 120e6, time.UTC), From: "did:web:a.example", To: []string{"did:web:b.example"}, Intent: envelope.Notify, ReplyTo: envelope.NewID(),
		Context: []envelope.Reference{{ID: envelope.NewID(), Hash: "sha256:" + strings.Repeat("a", 64)}}, Stream: "str-1", Window: 3,
		Body: envelope.NewBody("application/octet-stream", []byte{0xff, 0}), CapToken: "t", Sig: "x..y", Ext: map[string]json.RawMessage{"x-hops": json.RawMessage("1")},
	}
	text, err := e.Text()
	if err != nil {
		t.Fatal(err)
	}
	s, err := strict.Read(text)
	if err != nil || fmt.Sprintf("%+v", s.Envelope) != fmt.Sprintf("%+v", e) {
		t.Errorf("%s\n%+v\n%+v\n%v", text, s.Envelope, e, err)
	}
	if content, err := s.Body.Decode(10); err != nil || string(content) != "\xff\x00" {
		t.Errorf("%q, %v", content, err)
	}
}

// TestDigest (G-025, V-U20): a repeat may have another signature, token, spelling and
// number of hops; whatever else changes makes it another message.
func TestDigest(t *testing.T) {
	t.Parallel()
	digest := func(change map[string]string) [32]byte {
		s, err := reader.Read([]byte(text(change)))
		if err != nil {
			t.Fatal(err)
		}
		sum, err := s.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	first := digest(nil)
	for _, same := range []map[string]string{
		{"sig": `"other"`}, {"cap_token": `"t"`}, {"ext": `{"x-hops":2,"traceparent":"00-1"}`}, {"body": `{"content":"2\u002b2" , "type":"text/plain"}`},
	} {
		if digest(same) != first {
			t.Errorf("%v is another message", same)
		}
	}
	for _, other := range []map[string]string{
		{"body": `{"content":"2+3","type":"text/plain"}`}, {"intent": `"inform"`}, {"stream_id": `"s"`}, {"ts": `"2025-07-10T10:00:01Z"`}, {"ext": `{"x":1}`}, {"to": `["did:web:b.example"]`},
		{"body": `{"content":"2+2","type":"text/plain","x":1}`},
	} {
		if digest(other) == first {
			t.Errorf("%v is the same message", other)
		}
	}
}

// TestDigestIsKept (G-025): a digest is the hash of what package json writes, as it is kept from
// one release to the next.
func TestDigestIsKept(t *testing.T) {
	t.Parallel()
	for _, change := range []map[string]string{
		nil, {"cap_token": `"t"`, "ext": `{"x-hops":2}`}, {"ext": `{"x-hops":2,"z<":{"b":1,"a":"&"},"a":[1.0]}`}, {"delta_window": "7.0"},
		{"body": `{"type":"text/plain","content":"a < b && c > d \u2028 \n ä 😀"}`},
	} {
		s, err := reader.Read([]byte(text(change)))
		if err != nil {
			t.Fatal(err)
		}
		canonical, err := wire.Canonical(s.Received(), wire.RFC8785, 16, "sig", "cap_token")
		if err != nil {
			t.Fatal(err)
		}
		var all, ext map[string]json.RawMessage
		if err := json.Unmarshal(canonical, &all); err != nil {
			t.Fatal(err)
		}
		if raw, has := all["ext"]; has && json.Unmarshal(raw, &ext) != nil {
			t.Fatalf("ext is %s", raw)
		}
		delete(all, "ext")
		if delete(ext, "x-hops"); len(ext) == 0 {
			ext = nil
		}
		covered, err := json.Marshal([]map[string]json.RawMessage{all, ext})
		if err != nil {
			t.Fatal(err)
		}
		if sum, err := s.Digest(); err != nil || sum != sha256.Sum256(covered) {
			t.Errorf("%v: %x, %v", change, sum, err)
		}
	}
}

// TestCheckTime (V-U21, U-016): a time may be as far from now as clocks differ.
func TestCheckTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2025, 7, 10, 10, 0, 0, 0, time.UTC)
	for age, want := range map[time.Duration]envelope.Code{
		0: "", 5 * time.Minute: "", -5 * time.Minute: "", 5*time.Minute + 1: envelope.Unauthenticated, -5*time.Minute - 1: envelope.Unauthenticated, 24 * time.Hour: envelope.Unauthenticated,
	} {
		if err := envelope.CheckTime(now.Add(-age), now, 5*time.Minute); codeOf(t, err) != want {
			t.Errorf("%s: %v", age, err)
		}
	}
}

// TestReadDelta (U-060, U-106, D-U4, D-U13): what the schema of appendix A.2 takes.
func TestReadDelta(t *testing.T) {
	t.Parallel()
	const head = `"stream_id":"str-1","ts":"2025-07-10T13:38:01Z"`
	for text, want := range map[string]struct{ lenient, strict envelope.Code }{
		`{"delta_seq":17,` + head + `,"type":"chunk","payload":{"text":"x"}}`: {"", ""},
		`{"delta_seq":0,` + head + `,"type":"done"}`:                          {"", ""},
		`{"delta_seq":0,"type":"progress","payload":{"pct":10}}`:              {"", envelope.Malformed},
		`{` + head + `,"type":"done"}`:                                        {envelope.MissingSeq, envelope.MissingSeq},
		`{"delta_seq":-1,` + head + `,"type":"done"}`:                         {envelope.Malformed, envelope.Malformed},
		`{"delta_seq":1,` + head + `}`:                                        {envelope.Malformed, envelope.Malformed},
		`{"delta_seq":1,` + head + `,"type":"end"}`:                           {envelope.Malformed, envelope.Malformed},
		`{"delta_seq":1,` + head + `,"type":"done","payload":[]}`:             {envelope.Malformed, envelope.Malformed},
		`{"delta_seq":1,` + head + `,"type":"done","sig":"x"}`:                {envelope.Malformed, envelope.Malformed},
		`{"delta_seq":1,"delta_seq":2,` + head + `,"type":"done"}`:            {envelope.Malformed, envelope.Malformed},
		`[]`:                         {envelope.Malformed, envelope.Malformed},
		strings.Repeat(" ", 1<<20+1): {envelope.TooLarge, envelope.TooLarge},
	} {
		d, err := reader.ReadDelta([]byte(text), "str-1")
		if codeOf(t, err) != want.lenient || err == nil && d.Stream != "str-1" {
			t.Errorf("%.80s: %v, %v", text, d, err)
		}
		if _, err := strict.ReadDelta([]byte(text), "str-1"); codeOf(t, err) != want.strict {
			t.Errorf("strict, %.80s: %v", text, err)
		}
	}
	sent, err := json.Marshal(envelope.Delta{Seq: 3, Stream: "s", Time: time.Unix(0, 0), Type: envelope.DeltaDone, Payload: json.RawMessage(`{"answer":4}`)})
	if want := `{"delta_seq":3,"stream_id":"s","ts":"1970-01-01T00:00:00Z","type":"done","payload":{"answer":4}}`; err != nil || string(sent) != want {
		t.Errorf("%s, %v", sent, err)
	}
}

// FuzzRead looks for a text that is taken and has no second reading of the same envelope.
func FuzzRead(f *testing.F) {
	f.Add(text(nil))
	f.Add(text(map[string]string{"context": `[{"id":"urn:uuid:a","hash":"sha256:` + strings.Repeat("0", 64) + `"}]`, "ext": `{"a":1e3}`, "delta_window": "7"}))
	f.Fuzz(func(t *testing.T, text string) {
		s, err := reader.Read([]byte(text))
		if err != nil {
			codeOf(t, err)
			return
		}
		if s.Sig == "" {
			s.Sig = "x" // one that is empty is not written
		}
		sent, err := s.Text()
		if err != nil {
			t.Fatalf("%q cannot be written: %v", text, err)
		}
		again, err := reader.Read(sent)
		if err != nil {
			t.Fatalf("%q was written as %s: %v", text, sent, err)
		}
		twice, err := again.Text()
		if _, failed := s.Digest(); failed != nil || err != nil || string(twice) != string(sent) {
			t.Fatalf("%q was written as %s and then as %s: %v, %v", text, sent, twice, err, failed)
		}
	})
}
