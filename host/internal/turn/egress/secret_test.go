package egress_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/turn/egress"
)

const planted = `s3cr"et/<Key>+41e9`

func secret(t *testing.T, name, value, header string, hosts ...string) egress.Secret {
	t.Helper()
	s, err := egress.NewSecret(name, value, header, hosts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A secret goes only to the hosts it is bound to, in its header.
func TestSecretGoesToItsHosts(t *testing.T) {
	t.Parallel()
	w := newFakeNet(t)
	var got []string
	for i, at := range []string{apiAddr + ":80", apiAddr + ":81", otherAddr + ":80"} {
		w.serve(at, func(_ http.ResponseWriter, r *http.Request) {
			got = append(got, fmt.Sprint(i, r.URL.Path, r.Header.Values("X-Api-Key"), r.Header.Values("Authorization")))
		})
	}
	w.resolve("a.test", apiAddr)
	w.resolve("b.test", otherAddr)
	p := granted(t, "http://a.test", "http://a.test:81", "http://b.test")
	p.Secrets = []egress.Secret{
		secret(t, "k", planted, "x-api-key", "http://a.test/v1"),
		secret(t, "later", "never-sent", "X-Api-Key", "http://a.test"),
		secret(t, "b", "Bearer 12345678", "authorization", "http://b.test"),
	}
	for _, u := range []string{"http://a.test/v1", "http://a.test:81/v1", "http://b.test/v1"} {
		if _, err := w.client().Fetch(t.Context(), p, "", get(u)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"0/v1[" + planted + "] []", "1/v1[] []", "2/v1[] [Bearer 12345678]"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Once a fetch has left its origin, no secret is added, even for a host that the secret is
// bound to or after a return to the first origin.
func TestSecretStaysBehind(t *testing.T) {
	t.Parallel()
	w := redirectNet(t)
	p := granted(t, "http://a.test", "http://b.test")
	p.Secrets = []egress.Secret{secret(t, "k", planted, "X-Api-Key", "http://a.test", "http://b.test")}
	for to, want := range map[string]string{
		"http://a.test/x": "GET a.test/x body= type= auth= cookie= x=[secret k] key=",
		"http://b.test/x": "GET b.test/x body= type= auth= cookie= x= key=",
		"http://b.test/302%3Fto%3Dhttp%3A%2F%2Fa.test%2Fy": "GET a.test/y body= type= auth= cookie= x= key=",
	} {
		got, err := w.client().Fetch(t.Context(), p, "", get("http://a.test/302?to="+to))
		answered(t, got, err, 200, want)
	}
}

// A guest's own header with the name of a secret's header does not cross origins.
func TestGuestsOwnKeyStaysBehind(t *testing.T) {
	t.Parallel()
	w := redirectNet(t)
	p := granted(t, "http://a.test", "http://b.test")
	p.Secrets = []egress.Secret{secret(t, "k", planted, "X-Api-Key", "http://b.test")}
	req := get("http://a.test/302?to=http://b.test/x")
	req.Headers = map[string]string{"X-Api-Key": "own"}
	got, err := w.client().Fetch(t.Context(), p, "", req)
	answered(t, got, err, 200, "GET b.test/x body= type= auth= cookie= x= key=")
}

func TestHeaderOfASecretIsTheHosts(t *testing.T) {
	t.Parallel()
	w := redirectNet(t)
	p := granted(t, "http://a.test", "http://b.test")
	p.Secrets = []egress.Secret{secret(t, "k", planted, "X-Api-Key", "http://a.test")}
	for _, name := range []string{"X-Api-Key", "x-api-key", "X_Api_Key"} {
		req := get("http://a.test/x")
		req.Headers = map[string]string{name: "guest"}
		_, err := w.client().Fetch(t.Context(), p, "", req)
		refused(t, err, abi.CodeInvalid, "header", "from secrets.k")
	}
	req := get("http://b.test/x")
	req.Headers = map[string]string{"X-Api-Key": "own"}
	got, err := w.client().Fetch(t.Context(), p, "", req)
	answered(t, got, err, 200, "GET b.test/x body= type= auth= cookie= x=own key=")
}

// A secret that a server repeats in any usual encoding is scrubbed. Secrets bound to other
// hosts are scrubbed as well.
func TestEchoedSecretIsScrubbed(t *testing.T) {
	t.Parallel()
	inJSON, err := json.Marshal(planted)
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]string{
		"plain": planted, "json": string(inJSON), "query": url.QueryEscape(planted), "path": url.PathEscape(planted),
		"base64": base64.StdEncoding.EncodeToString([]byte(planted)), "base64url": base64.URLEncoding.EncodeToString([]byte(planted)),
		"slashes escaped": strings.ReplaceAll(strings.ReplaceAll(planted, `"`, `\"`), "/", `\/`),
		"hex":             hex.EncodeToString([]byte(planted)), "token alone": "tok-12345678", "with bytes": "\xff" + planted + "\xfe",
		"split by bad bytes": strings.Repeat(planted, 3),
	}
	w := newFakeNet(t)
	w.resolve("a.test", apiAddr)
	w.serve(apiAddr+":80", func(w http.ResponseWriter, r *http.Request) {
		text := forms[r.URL.Query().Get("form")]
		w.Header().Set("X-Echo", text)
		w.Header()["X-"+strings.ToUpper(hex.EncodeToString([]byte(planted)))] = []string{"name"}
		var out io.Writer = w
		if r.URL.Query().Has("gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer func() { _ = z.Close() }()
			out = z
		}
		fmt.Fprintf(out, "before %s after", text)
	})
	p := granted(t, "http://a.test")
	p.Secrets = []egress.Secret{
		secret(t, "k", planted, "X-Api-Key", "http://a.test"), secret(t, "b", "Bearer tok-12345678", "Authorization", "http://b.test"),
	}
	for form, text := range forms {
		for _, coding := range []string{"", "&gzip"} {
			got, err := w.client().Fetch(t.Context(), p, "", get("http://a.test/?form="+url.QueryEscape(form)+coding))
			if err != nil {
				t.Fatal(err)
			}
			all := fmt.Sprint(got.Body, string(got.BodyBase64), got.Headers)
			if strings.Contains(all, strings.Trim(text, "\"=\uFFFD")) || strings.Contains(all, "tok-") || !strings.Contains(all, "[secret ") {
				t.Errorf("%s%s: %s", form, coding, all)
			}
			for name := range got.Headers {
				if strings.Contains(name, hex.EncodeToString([]byte(planted))) {
					t.Errorf("%s: the header %s names it", form, name)
				}
			}
		}
	}
}

// Errors that quote a server do not quote a secret.
func TestErrorsHoldNoSecret(t *testing.T) {
	t.Parallel()
	const value = "planted41e9"
	w := newFakeNet(t)
	w.resolve("a.test", apiAddr)
	w.serve(apiAddr+":80", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/coding" {
			w.Header().Set("Content-Encoding", r.Header.Get("X-Api-Key"))
			_, _ = io.WriteString(w, "x")
			return
		}
		location := strings.ReplaceAll(r.URL.Query().Get("to"), "KEY", r.Header.Get("X-Api-Key"))
		w.Header()["Location"] = []string{location}
		w.WriteHeader(http.StatusFound)
	})
	p := granted(t, "http://a.test", "http://*")
	p.Secrets = []egress.Secret{secret(t, "k", value, "X-Api-Key", "http://a.test")}
	for _, to := range []string{
		"http://evil.test/KEY", "http://KEY.evil.test/", "https://evil.test/?q=KEY", "KEY://x", "http://KEY@evil.test/", "/%5CKEY", "http://KEY:x/",
		"http://evil.test/%2570lantedKEY", "/same/KEY", "http://evil.test/%2570lanted41e9", "/%2570lanted41e9",
	} {
		_, err := w.client().Fetch(t.Context(), p, "", get("http://a.test/?to="+to))
		refused(t, err, abi.CodeDenied, "redirect", "")
		if strings.Contains(strings.ToLower(err.Message), value) {
			t.Errorf("%s: %s", to, err)
		}
	}
	_, err := w.client().Fetch(t.Context(), p, "", get("http://a.test/coding"))
	refused(t, err, abi.CodeUnavailable, "encoding", "[secret k]")
	for _, a := range w.dialled {
		if a.Addr().String() != apiAddr {
			t.Errorf("dialled %s", a)
		}
	}
}

func TestSecretPrintsNothing(t *testing.T) {
	t.Parallel()
	s := secret(t, "k", planted, "X-Api-Key", "http://a.test")
	p := egress.Policy{Secrets: []egress.Secret{s}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb, s, &s, p)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "secret", s, "policy", p)
	slog.New(slog.NewTextHandler(&out, nil)).Info("m", "secret", s, "policy", p)
	if err := json.NewEncoder(&out).Encode(p); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"s3cr", "41e9", hex.EncodeToString([]byte(planted))} {
		if strings.Contains(out.String(), form) {
			t.Errorf("%q in %s", form, out.String())
		}
	}
	if n := strings.Count(out.String(), "[secret k]"); n < 25 {
		t.Errorf("%d placeholders in %s", n, out.String())
	}
}

func TestNewSecretRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		value, header string
		hosts         []string
		want          string
	}{
		"no value":        {"", "X-Key", []string{"https://a.test"}, "value"},
		"line break":      {"planted\n", "X-Key", []string{"https://a.test"}, "value"},
		"injection":       {"planted\r\nX: y", "X-Key", []string{"https://a.test"}, "value"},
		"space":           {" planted", "X-Key", []string{"https://a.test"}, "value"},
		"no header":       {"planted", "", []string{"https://a.test"}, "header"},
		"bad header":      {"planted", "X Key", []string{"https://a.test"}, "header"},
		"host header":     {"planted", "Host", []string{"https://a.test"}, "header"},
		"no hosts":        {"planted", "X-Key", nil, "hosts must name"},
		"not a host":      {"planted", "X-Key", []string{"a.test"}, "hosts"},
		"every host":      {"planted", "X-Key", []string{"https://*"}, "every host"},
		"every host port": {"planted", "X-Key", []string{"https://a.test", "https://*:8443"}, "every host"},
	} {
		_, err := egress.NewSecret("k", tt.value, tt.header, tt.hosts...)
		if err == nil || !strings.Contains(err.Error(), "secrets.k: "+tt.want) && !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
