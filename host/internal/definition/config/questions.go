package config

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// Questions is the [questions] table.
type Questions struct {
	// Webhook is the URL that is posted to when calls wait for people, empty for none. Secret signs the requests.
	Webhook string
	Secret  Secret
}

// secretPrefix begins a secret of webhooks
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
const secretPrefix = "whsec_"

// Bounds of a decoded secret, in bytes.
const minWebhookKey, maxWebhookKey = 24, 64

// Key is the secret, decoded; nil for one that is malformed.
func (q Questions) Key() []byte {
	encoded, ok := strings.CutPrefix(q.Secret.Reveal(), secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < minWebhookKey || len(key) > maxWebhookKey {
		return nil
	}
	return key
}

// Origin is where the webhook is, without its path, which may be a secret; empty without one.
func (q Questions) Origin() string {
	u, err := url.Parse(q.Webhook)
	if err != nil || q.Webhook == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

func (q *Questions) Settings() []Setting {
	return []Setting{
		field(&q.Webhook, "webhook", "string", (*table).exactURL, "URL to which the host posts which calls wait for people, without what they ask. `http` is for private addresses. Without it nothing is sent.").restarts(),
		secretText(&q.Secret, "secret", "What signs these requests, by `env::` or `file::`: `whsec_` and 24 to 64 bytes in base64.").restarts(),
	}
}

func (d *decoder) questions(t *table) Questions {
	var q Questions
	t.read(q.Settings())
	t.refuseUnknown()
	switch v, ok := t.value("secret"); {
	case ok && q.Webhook == "" && !t.has("webhook"):
		d.atKey(t.child("secret"), "questions.secret signs what goes to questions.webhook; add it, or remove this line")
	case ok && q.Key() == nil:
		d.atValue(v.location, `questions.secret must be "whsec_" and 24 to 64 bytes in base64, as from: echo whsec_$(head -c 32 /dev/urandom | base64)`)
	case !ok && q.Webhook != "" && !t.has("secret"):
		t.missing("secret", `, without which nobody can tell that the host has sent it; add secret = "env::QUESTIONS_SECRET"`)
	}
	return q
}
