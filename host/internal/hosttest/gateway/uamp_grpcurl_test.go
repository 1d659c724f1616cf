package gateway_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// grpcurl is the client of gRPC by others.
type grpcurl struct {
	program, protos string
	site            *uampSite
}

func newGRPCurl(t *testing.T, s *uampSite) grpcurl {
	t.Helper()
	root := guests.Root()
	return grpcurl{hosttest.SystemProgram(t, filepath.Join(root, "bin/uampclients/grpcurl")), filepath.Join(root, "spec/gateways/uamp/uamppb"), s}
}

// call calls a method with flags, and returns what the program prints.
func (g grpcurl) call(t *testing.T, method, message string, flags ...string) (string, error) {
	t.Helper()
	flags = append(flags, "-import-path", g.protos, "-proto", "uamp.proto", "-cacert", filepath.Join(g.site.Dir, "ca.pem"), "-authority", "hive.example",
		"-max-time", "60", "-d", "@", g.site.Addr(), "uamp.v1.Agent/"+method)
	cmd := exec.CommandContext(t.Context(), g.program, flags...)
	cmd.Stdin = strings.NewReader(message)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// withBearer is the flag that shows a token.
func withBearer(token string) []string { return []string{"-H", "authorization: Bearer " + token} }

// jsonMessage is an envelope in its message, which has JSON as bytes.
func jsonMessage(text string) string {
	return fmt.Sprintf(`{"json":%q}`, base64.StdEncoding.EncodeToString([]byte(text)))
}

// TestUAMPGRPCurl (U-055, U-056, U-104): grpcurl sends a signed envelope, as a call and as a frame,
// and reads the stream of the answer in its windows. What is refused has the status of its code
// and the document's code, and the details of a refusal have the signed error.
func TestUAMPGRPCurl(t *testing.T) {
	t.Parallel()
	s := newUAMPSite(t, "")
	g := newGRPCurl(t, s)
	own := withBearer(labToken)
	ask := s.newAsk(t)
	text, err := g.call(t, "Send", jsonMessage(ask), own...)
	var reply struct{ StreamID string }
	if err != nil || json.Unmarshal([]byte(text), &reply) != nil || reply.StreamID == "" {
		t.Fatalf("%v: %s", err, text)
	}
	var kinds []string
	for _, from := range []int{0, 2} { // the window has two deltas
		text, err := g.call(t, "Subscribe", fmt.Sprintf(`{"stream_id":%q,"from":%d}`, reply.StreamID, from), own...)
		if err != nil {
			t.Fatalf("from %d: %v: %s", from, err, text)
		}
		kinds = append(kinds, kindsOf(t, text)...)
	}
	if want := []string{"0 chunk", "1 chunk", "2 done"}; !slices.Equal(kinds, want) {
		t.Errorf("the stream has %v", kinds)
	}
	if text, err := g.call(t, "Stream", `{"envelope":`+jsonMessage(s.newAsk(t))+`}`, own...); err != nil || !strings.Contains(text, `"streamId"`) {
		t.Errorf("a frame: %v: %s", err, text)
	}
	if text, err := g.call(t, "GetManifest", "{}", own...); err != nil || !strings.Contains(text, `"jws": "ey`) {
		t.Errorf("the manifest: %v: %s", err, text)
	}
	for name, c := range map[string]struct {
		method, message string
		flags           []string
		want, code      string
	}{
		"no credential":   {"Send", jsonMessage(s.newAsk(t)), nil, "Unauthenticated", "4.01"},
		"another token":   {"Send", jsonMessage(s.newAsk(t)), withBearer("another"), "Unauthenticated", "4.01"},
		"a changed byte":  {"Send", jsonMessage(strings.Replace(s.newAsk(t), "finish_message", "finish_massage", 1)), own, "Unauthenticated", "4.01"},
		"no JSON":         {"Send", jsonMessage("{"), own, "InvalidArgument", "4.00"},
		"too large":       {"Send", jsonMessage(strings.Repeat(" ", 270<<10)), own, "ResourceExhausted", "4.13"},
		"another stream":  {"Subscribe", `{"stream_id":"str-none"}`, own, "NotFound", "4.04"},
		"another agent":   {"GetManifest", `{"did":"did:web:hive.example:agents:hive:none"}`, own, "NotFound", "4.04"},
		"beyond the end":  {"Subscribe", fmt.Sprintf(`{"stream_id":%q,"from":9}`, reply.StreamID), own, "Aborted", "4.09"},
		"a changed frame": {"Stream", `{"envelope":` + jsonMessage(strings.Replace(ask, "finish_message", "finish_massage", 1)) + `}`, own, "", "4.01"},
	} {
		text, err := g.call(t, c.method, c.message, c.flags...)
		if (err == nil) != (c.want == "") || !strings.Contains(text, c.want) || !strings.Contains(framesText(text), c.code) {
			t.Errorf("%s: %v: %s", name, err, text)
		}
		if signed := strings.Contains(text, `"@type": "type.googleapis.com/uamp.v1.Envelope"`); signed != (name == "a changed byte") {
			t.Errorf("%s: a signed error is %v: %s", name, signed, text)
		}
	}
	if text, err := g.call(t, "Send", jsonMessage(s.newAsk(t)), "-plaintext"); err == nil {
		t.Errorf("in the clear: %s", text)
	}
}

// messagesOf are the messages that grpcurl prints one after the other.
func messagesOf(text string) (list []map[string]any) {
	in := json.NewDecoder(strings.NewReader(text))
	for {
		var m map[string]any
		if in.Decode(&m) != nil {
			return list
		}
		list = append(list, m)
	}
}

// kindsOf are the numbers and types of deltas.
func kindsOf(t *testing.T, text string) (list []string) {
	t.Helper()
	for _, m := range messagesOf(text) {
		encoded, _ := m["json"].(string)
		raw, err := base64.StdEncoding.DecodeString(encoded)
		var d struct {
			Seq  int `json:"delta_seq"`
			Type string
		}
		if err != nil || json.Unmarshal(raw, &d) != nil {
			t.Fatalf("%v", m)
		}
		list = append(list, fmt.Sprint(d.Seq, " ", d.Type))
	}
	return list
}

// framesText is what grpcurl prints, with the JSON of each frame in it.
func framesText(text string) string {
	for _, m := range messagesOf(text) {
		e, _ := m["envelope"].(map[string]any)
		encoded, _ := e["json"].(string)
		if raw, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			text += string(raw)
		}
	}
	return text
}
