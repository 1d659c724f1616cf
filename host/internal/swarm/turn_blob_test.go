package swarm_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
)

// blobAgent puts what a message says, or reads it by its address.
func blobAgent(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
	verb, data, _ := strings.Cut(incoming(tn).Payload.Body, " ")
	if verb == "put" {
		id, fault := tn.PutBlob([]byte(data))
		if fault != nil {
			return tell(tn, fault.Error())
		}
		return tell(tn, id.String())
	}
	got, err := tn.Blob(ctx, sha256.Sum256([]byte(data)))
	if err != nil {
		return tell(tn, err.Error())
	}
	return tell(tn, string(got))
}

// Blobs are their tenant's: all its tasks and principals have them, and no other
// tenant does, with the same bytes or their address.
func TestBlobsOfTenants(t *testing.T) {
	t.Parallel()
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {}}))
	h.agents.by["boss"] = blobAgent
	bob := func(p *swarm.Post) { p.Principal.ID = "bob" }
	id := fmt.Sprintf("%x", sha256.Sum256([]byte("tea")))
	for i, c := range []struct {
		body   string
		change []func(*swarm.Post)
		want   string
	}{
		{"get tea", []func(*swarm.Post){of("acme")}, "not found"},
		{"put tea", []func(*swarm.Post){of("acme")}, id},
		{"get tea", []func(*swarm.Post){of("acme"), bob, task("u")}, "tea"},
		{"get tea", []func(*swarm.Post){of("free")}, "not found"},
		{"put tea", []func(*swarm.Post){of("free")}, id},
		{"get tea", []func(*swarm.Post){of("free")}, "tea"},
	} {
		if a := h.ask(c.body, c.change...); !strings.HasSuffix(a.Body, c.want) {
			t.Errorf("%d: %q, want %q", i, a.Body, c.want)
		}
	}
	if err := h.rt.EraseTenant(t.Context(), "acme", nil); err != nil {
		t.Fatal(err)
	}
	if a := h.ask("get tea", of("acme")); !strings.HasSuffix(a.Body, "not found") {
		t.Errorf("erased: %q", a.Body)
	}
	if a := h.ask("get tea", of("free")); a.Body != "tea" {
		t.Errorf("of another: %q", a.Body)
	}
}

// A turn may put so many bytes; the same again is nothing.
func TestBlobBytesOfATurn(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.agents.by["boss"] = func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		for i := range abi.MaxBlobBytes / abi.MaxBlob {
			if _, fault := tn.PutBlob(append(make([]byte, abi.MaxBlob-1), byte(i))); fault != nil {
				return failed(fault)
			}
		}
		_, more := tn.PutBlob(make([]byte, abi.MaxBlob-1))
		_, again := tn.PutBlob(append(make([]byte, abi.MaxBlob-1), 3))
		return tell(tn, fmt.Sprint(more, again))
	}
	if a := h.ask("go"); a.Body != "LIMIT: the blobs of the turn would have 17999999 bytes, at most 16777216 <nil>" {
		t.Errorf("%q", a.Body)
	}
}

// A blob that does not fit what the tenant may keep is refused before it is there,
// with the key that raises it.
func TestBlobQuota(t *testing.T) {
	t.Parallel()
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {Storage: 200_000}}))
	large := string(bytes.Repeat([]byte{'x'}, 150_000))
	h.agents.by["boss"] = func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		one, first := tn.PutBlob([]byte(large))
		again, same := tn.PutBlob([]byte(large))
		_, second := tn.PutBlob([]byte("2" + large))
		if first != nil || same != nil || one != again {
			return failed(errors.New("the first is refused"))
		}
		return tell(tn, fmt.Sprint(second))
	}
	a := h.ask("go", of("acme"))
	for _, want := range []string{`LIMIT: tenant "acme" has `, " of its quota of 200000 stored, and 300001 more do not fit", "raise [tenants.acme] storage"} {
		if !strings.Contains(a.Body, want) {
			t.Errorf("%q lacks %q", a.Body, want)
		}
	}
	if a := h.ask("go", of("free")); a.Body != "<nil>" {
		t.Errorf("%q", a.Body)
	}
}

// One tenant's series do not take another's room.
func TestMetricsOfTenants(t *testing.T) {
	t.Parallel()
	h := newHive(t, withTenants(map[string]swarm.Quota{"acme": {}}))
	h.agents.by["boss"] = func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		var last *abi.Error
		one := 1.0
		for i := range 101 {
			last = tn.ReportMetric(abi.MetricRequest{Name: "n", Value: &one, Labels: map[string]string{"i": fmt.Sprint(i)}})
		}
		return tell(tn, fmt.Sprint(last))
	}
	for _, tenant := range []string{"acme", "free"} {
		if a := h.ask("go", of(tenant)); !strings.Contains(a.Body, `LIMIT: agent "boss" has 100 series`) {
			t.Errorf("%q", a.Body)
		}
	}
	if n := len(h.rt.Metrics().Series()); n != 200 {
		t.Errorf("%d series", n)
	}
}
