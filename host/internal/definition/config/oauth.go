package config

import "strings"

// OAuth is where the bearer token of a partner comes from: it is given for the credentials of a
// client (https://www.rfc-editor.org/rfc/rfc6749#section-4.4). The zero value is none.
type OAuth struct {
	TokenURL     string
	ClientID     string
	ClientSecret Secret
	Scope        string
}

// Settings are the keys of the table.
func (o *OAuth) Settings() []Setting {
	return []Setting{
		field(&o.TokenURL, "token_url", KindURL, (*table).url, "Where tokens are given, to a POST with `grant_type=client_credentials`.").by(Fixed),
		text(&o.ClientID, "client_id", "Who this host is there.").by(Fixed),
		secretText(&o.ClientSecret, "client_secret", "What shows it there, by HTTP Basic."),
		text(&o.Scope, "scope", "Scope that is asked for, words with spaces between them.").by(Fixed),
	}
}

// checkOAuth makes sure that a partner's credential is complete, and is one.
func (r gatewayReader) checkOAuth(p Partner, o OAuth) {
	table := r.t.child("partners").child(p.Name)
	at := table.child("oauth")
	if o == (OAuth{}) {
		return
	}
	for _, key := range []struct{ name, value string }{{"token_url", o.TokenURL}, {"client_id", o.ClientID}, {"client_secret", o.ClientSecret.Reveal()}} {
		if key.value == "" {
			r.d.atKey(at, at.path+" needs "+key.name)
		}
	}
	if p.AuthToken != "" {
		r.d.atKey(table.child("auth_token"), table.child("auth_token").path+" and oauth both give the bearer token: leave one out")
	}
	if strings.HasPrefix(o.TokenURL, "http://") && !p.AllowPrivate {
		at := at.child("token_url")
		r.d.atValue(at, at.path+": over http anybody on the way could read the secret; use https, or set allow_private = true in a network of your own")
	}
}
