package mail_test

import (
	"encoding/json"
	"strings"
	"testing"

	"skep/spec/mail"
)

// benchInput is a message as peers send it: the type behind the payload, escapes
// in the body.
func benchInput(b *testing.B) []byte {
	b.Helper()
	m := request()
	m.Payload.Body = strings.Repeat("The tank is at \"71 %\".\n", 20)
	m.Payload.SenderSwarm = "harbor"
	m.Payload.RoutingInfo = []byte(`{"remote_swarm":"depot"}`)
	raw, err := m.AppendJSON(nil)
	if err != nil {
		b.Fatal(err)
	}
	return raw
}

func BenchmarkParseMessage(b *testing.B) {
	raw := benchInput(b)
	behind := []byte(strings.Replace(strings.TrimSuffix(string(raw), "}"), `"msg_type":"request",`, "", 1) + `,"msg_type":"request"}`)
	for name, in := range map[string][]byte{"type first": raw, "type last": behind} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := mail.ParseMessage(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStdDecode is the yardstick: encoding/json into structs of the same
// fields, without any of the checks.
func BenchmarkStdDecode(b *testing.B) {
	in := benchInput(b)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		var m struct {
			ID        string `json:"id"`
			Timestamp string `json:"timestamp"`
			Type      string `json:"msg_type"`
			Message   struct {
				TaskID      string          `json:"task_id"`
				RequestID   string          `json:"request_id"`
				Sender      mail.Address    `json:"sender"`
				Recipient   mail.Address    `json:"recipient"`
				Subject     string          `json:"subject"`
				Body        string          `json:"body"`
				SenderSwarm string          `json:"sender_swarm"`
				RoutingInfo json.RawMessage `json:"routing_info"`
			} `json:"message"`
		}
		if err := json.Unmarshal(in, &m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	m, err := mail.ParseMessage(benchInput(b))
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		if buf, err = m.AppendJSON(buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
