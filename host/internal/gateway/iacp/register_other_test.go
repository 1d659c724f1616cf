package iacp_test

import (
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/iacp/iacptest"
)

// TestRegisterOthers (I-073): a partner registers its own agents alone, whatever the id looks like: no
// agent of another partner or of ours, and none whose id begins or ends as its own. Both
// register their own afterwards.
func TestRegisterOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	other := gatewaytest.Realm("acme", "mill")
	other.May = gateway.Rights{gateway.MayAsk, gateway.MayTell}
	s.rt.Admit("mill-token", other)
	s.rt.AddPartner(gateway.Partner{Name: "mill", Tenant: "acme", IDs: []string{"mill-*"}, May: other.May})
	mill, err := iacptest.Dial(s.addr, "mill-token", "ack")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mill.Close() })
	if _, err := mill.Register("mill-1"); err != nil {
		t.Fatal(err)
	}
	depot := s.dial(t, "ack")
	for _, id := range []string{"mill-1", "mill-2", "echo", "hive", "echo@hive", "system", "*", "depot", "depo", " depot-1", "x depot-1", "Depot-1", "mill-1\x00depot-1", "../depot-1", ""} {
		for _, sender := range []string{id, "depot-1"} { // a sender that is its own helps nothing
			m := iacptest.New("agent_register", sender, "", map[string]any{"agent_info": map[string]any{"agent_id": id}})
			got := exchange(t, depot, m, "error_response")
			if code, _ := got.Payload["error_code"].(string); code != "PERMISSION_DENIED" && code != "INVALID_MESSAGE_FORMAT" {
				t.Errorf("%q registers %q: %s", sender, id, got.Raw)
			}
		}
	}
	for _, c := range []*iacptest.Conn{depot, mill} {
		if _, err := c.Register(map[*iacptest.Conn]string{depot: "depot-1", mill: "mill-1"}[c]); err != nil {
			t.Errorf("its own agent afterwards: %v", err)
		}
	}
}
