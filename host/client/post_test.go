package client

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A post that resumes has how, and with what; its bytes are the same each time.
func TestResumingPosts(t *testing.T) {
	t.Parallel()
	answer := `[{"call_id":"t1.c1","content":"yes"}]`
	for name, c := range map[string]struct {
		post Post
		want string
	}{
		"message":  {Post{Task: "t", Body: "b"}, `{"body":"b","task_id":"t"}`},
		"response": {Post{Task: "t", Body: "b", Continue: true}, `{"body":"b","task_id":"t","resume_from":"user_response"}`},
		"result": {Post{Task: "t", Continue: true, Result: &answer},
			`{"body":"","task_id":"t","resume_from":"breakpoint_tool_call","kwargs":{"breakpoint_tool_call_result":"[{\"call_id\":\"t1.c1\",\"content\":\"yes\"}]"}}`},
	} {
		c.post.Key = "k"
		k, err := newPost(c.post)
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if json.Unmarshal(k.body, &got) != nil || json.Unmarshal([]byte(c.want), &want) != nil {
			t.Fatalf("%s", k.body)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if again, _ := newPost(c.post); string(again.body) != string(k.body) {
			t.Errorf("%s: %s, then %s", name, k.body, again.body)
		}
	}
}

// A task's id comes as it is, whatever the header had to write differently.
func TestTaskOfAnswer(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"t-1": "t-1", "a/b%20c%25%C3%BC": "a/b c%\u00fc", "50%25%2541": "50%%41", "50%": "50%", "": "",
	} {
		c := fakeHost(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-MAIL-Task-Id", header)
			reply(w, http.StatusOK, `{"response":"42"}`)
		})
		if a, err := c.PostMessage(t.Context(), Post{Body: "b"}); err != nil || a.Task != want {
			t.Errorf("%q: %q, %v; want %q", header, a.Task, err, want)
		}
	}
}

func TestTokenForms(t *testing.T) {
	t.Parallel()
	for token, ok := range map[string]bool{
		"": true, "skep_abc": true, "schl\u00fcssel": true, "a b": false, "a\n": false, "\ra": false, "a\x00": false, "a\x7f": false, "a\tb": false,
	} {
		if _, err := New(Options{URL: "http://127.0.0.1:1", Token: token}); (err == nil) != ok {
			t.Errorf("%q: %v", token, err)
		}
	}
}
