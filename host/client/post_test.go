package client

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A post that resumes says how, and with what; its bytes are the same each time.
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
