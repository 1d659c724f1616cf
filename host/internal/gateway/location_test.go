package gateway_test

import (
	"errors"
	"net/url"
	"testing"

	"skep/host/internal/gateway"
)

func TestResolveLocation(t *testing.T) {
	t.Parallel()
	from, err := url.Parse("https://lab.example/v1/messages")
	if err != nil {
		t.Fatal(err)
	}
	for location, want := range map[string]string{
		"/v1/stream/7": "https://lab.example/v1/stream/7", "stream": "https://lab.example/v1/stream", "https://lab.example/x": "https://lab.example/x",
		"http://lab.example/x": "", "https://other.example/x": "", "//other.example/x": "", "https://lab.example:444/x": "", "https://me@lab.example/x": "", "%zz": "",
	} {
		got, err := gateway.ResolveLocation(from, location)
		if got != want || (want == "") != errors.As(err, new(*gateway.Refusal)) {
			t.Errorf("%s: %q, %v", location, got, err)
		}
	}
}
