package client

import (
	"net/http"
	"testing"
)

// Gateways and pings come as the host has them; a tenant is named only when it is given.
func TestGateways(t *testing.T) {
	t.Parallel()
	const one = `{"name":"a2a","healthy":false,"detail":"no card key","connections":1,"sessions":2,"streams":3,"agents":[{"name":"desk","entrypoint":true}],"partners":[{"name":"shop","tenant":"acme","may":["ask"]}]}`
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.RequestURI() {
		case "GET /skep/v1/gateways":
			reply(w, 200, `{"gateways":[`+one+`]}`)
		case "GET /skep/v1/gateways?tenant=a+b", "GET /skep/v1/gateways/a%2Fb":
			reply(w, 200, `{}`)
		case "GET /skep/v1/gateways/a2a?tenant=acme":
			reply(w, 200, one)
		case "POST /skep/v1/partners/a%2Fb/ping":
			reply(w, 200, `{"partner":"a/b","gateway":"a2a","active":false,"latency":null,"agents":[],"error":"it answers 502"}`)
		default:
			reply(w, 404, `{"detail":"there is nothing at `+r.URL.RequestURI()+`"}`)
		}
	})
	list, err := c.Gateways(t.Context(), "")
	if err != nil || len(list) != 1 || list[0].Healthy || list[0].Streams != 3 || list[0].Agents[0].Name != "desk" || list[0].Partners[0].Tenant != "acme" {
		t.Errorf("Gateways() = %+v, %v", list, err)
	}
	if list, err := c.Gateways(t.Context(), "a b"); err != nil || len(list) != 0 {
		t.Errorf("Gateways(a b) = %+v, %v", list, err)
	}
	if g, err := c.Gateway(t.Context(), "a2a", "acme"); err != nil || g.Detail != "no card key" {
		t.Errorf("Gateway() = %+v, %v", g, err)
	}
	if _, err := c.Gateway(t.Context(), "a/b", ""); err != nil {
		t.Error(err)
	}
	if p, err := c.PingPartner(t.Context(), "a/b"); err != nil || p.Active || p.Latency != nil || p.Error != "it answers 502" {
		t.Errorf("PingPartner() = %+v, %v", p, err)
	}
}
