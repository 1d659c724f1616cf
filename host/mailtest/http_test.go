package mailtest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHTTPLimits: [limits.http] bounds the requests of agents; what is refused
// names the key.
func TestHTTPLimits(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		fmt.Fprint(w, strings.Repeat("x", len(r.URL.Path)))
	}))
	defer site.Close()
	defer close(hold)
	agents := strings.ReplaceAll(hive, "comm_targets", fmt.Sprintf("allow = { http = [%q], http_private = true }\ncomm_targets", site.URL))
	sizes := newWorldOf(t, "", agents, "[limits.http]\nrequest = 4\nresponse = 5\n")
	brief := newWorldOf(t, "", agents, "[limits.http]\ntimeout = \"100ms\"\n")
	for _, c := range []struct {
		w                *world
		path, body, want string
	}{
		{sizes, "/fits", "four", "xxxxx"},
		{sizes, "/fits", "fives", "ERROR LIMIT: the body has 5 bytes, at most 4 ([limits.http] request)"},
		{sizes, "/larger", "", "ERROR LIMIT: the body of the answer from " + site.URL + "/larger is larger than 5 bytes ([limits.http] response)"},
		{brief, "/slow", "", "ERROR DEADLINE: no whole answer from " + site.URL + "/slow within 100ms ([limits.http] timeout)"},
	} {
		fetch := obj{"method": "POST", "url": site.URL + c.path, "body": c.body}
		if got := c.w.ask(obj{"body": script("http.fetch", fetch, "task_complete", obj{"finish_message": "{{0}}"})}); got != c.want {
			t.Errorf("%s: %q, want %q", c.path, got, c.want)
		}
	}
}

// TestHTTPWithoutKey: a request under a grant of http_no_key carries no
// Idempotency-Key, also where a wider grant would cover it.
func TestHTTPWithoutKey(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, len(r.Header.Values("Idempotency-Key")))
	}))
	defer site.Close()
	agents := strings.ReplaceAll(hive, "comm_targets", fmt.Sprintf(
		"allow = { http = [%q], http_no_key = [\"POST %s/odd\"], http_private = true }\ncomm_targets", site.URL, site.URL))
	w := newWorldOf(t, "", agents, "")
	for request, want := range map[[2]string]string{{"POST", "/odd/one"}: "0", {"GET", "/odd/one"}: "1", {"POST", "/other"}: "1"} {
		fetch := obj{"method": request[0], "url": site.URL + request[1]}
		if got := w.ask(obj{"body": script("http.fetch", fetch, "task_complete", obj{"finish_message": "{{0}}"})}); got != want {
			t.Errorf("%s: %s keys, want %s", request, got, want)
		}
	}
}
