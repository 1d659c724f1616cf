package a2a_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/a2a"
	"skep/host/internal/gateway/gatewaytest"
)

// FuzzRequest sends any bytes in both versions: the gateway answers with JSON, or with a
// stream, and does not panic.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		sendBody(hello), sendBody(`{"messageId":"m2","contextId":"c","role":"ROLE_USER","parts":[{"data":{"a":[1]}},{"raw":"AA==","filename":"f"},{"url":"x"}]}`),
		`{"jsonrpc":"2.0","id":"x","method":"SendStreamingMessage","params":{"message":` + hello + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageSize":3,"pageToken":"m1","status":"TASK_STATE_COMPLETED"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"m1"}}`, `{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{"id":"m1"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m3","role":"user","parts":[{"kind":"text","text":"hi"}]}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"CreateTaskPushNotificationConfig","params":{"taskId":"m1","url":"https://x"}}`, `[]`, `null`, `{"a":1,"a":2}`,
	} {
		f.Add([]byte(seed))
	}
	rt := gatewaytest.New()
	rt.Admit(token, gatewaytest.User("acme", "ann"))
	rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: "echo", Entrypoint: true}, gatewaytest.Echo)
	f.Cleanup(rt.Close)
	handler := gatewaytest.Listener(rt, a2a.New(a2a.Options{Runtime: rt, V03: true, Push: true, PushClient: &http.Client{}}).Mounts())
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, version := range []string{"1.0", "0.3"} {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a2a/hive/echo", bytes.NewReader(body))
			req.Header.Set("Authorization", "Bearer "+token)
			req.Header.Set("A2A-Version", version)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			stream := w.Header().Get("Content-Type") == "text/event-stream"
			if w.Code != http.StatusOK || !stream && !json.Valid(w.Body.Bytes()) {
				t.Errorf("version %s: %d %s", version, w.Code, w.Body)
			}
		}
	})
}
