package cli

import (
	"strings"
	"testing"

	"skep/host/internal/gateway/acp/message"
)

// TestACPStdioError: an ERROR of skep acp stdio itself has the form of content that
// its message has, and returns the header fields that the operator may have declared.
func TestACPStdioError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ start, contentType, body, order string }{
		{`{"header":{"sender":"a","receiver":"b","id":"1","content_type":"text/plain","x_order":7,"x_ack":"requested"},"body":"xxx`, "text/plain", "timeout: why", "7"},
		{`{"header":{"sender":"a","receiver":"b","id":"1","content_type":"application/json; charset=utf-8","x_order":7},"body":""}`, "application/json", `{"code":"timeout","message":"why","retry":false}`, "7"},
		{`{"header":{"sender":"a","receiver":"b","id":"1","x_order":"` + strings.Repeat("7", maxOthers) + `"}}`, "application/json", `{"code":"timeout","message":"why","retry":false}`, ""},
		{`{"header":{"sender":"a","receiver":"b","id":{"id":"1"},"x_order":7`, "application/json", `{"code":"timeout","message":"why","retry":false}`, ""},
		{`no message`, "application/json", `{"code":"timeout","message":"why","retry":false}`, ""},
	} {
		m := errorAbout([]byte(c.start), "timeout", "why")
		if m.Header.ContentType != c.contentType || m.Body != c.body || string(m.Header.Extra["x_order"]) != c.order || m.Header.Extra["x_ack"] != nil {
			t.Errorf("%.100s: %+v", c.start, m)
		}
		text, err := m.MarshalJSON()
		if err != nil || (&message.Message{}).UnmarshalJSON(text) != nil {
			t.Errorf("%.100s: %s, %v", c.start, text, err)
		}
	}
}
