package plan

import (
	"reflect"

	"skep/host/internal/definition/config"
)

// fileForm gives a table the keys of the file where its fields are called otherwise, nil
// where they are not.
func fileForm(v any, exact bool) map[string]any {
	form := map[string]any{}
	set := func(key string, v any) { form[key] = plain(reflect.ValueOf(v), exact) }
	switch v := v.(type) {
	case config.Model:
		return settingsForm(v.Settings(), exact)
	case config.Gateway:
		return gatewayForm(v, exact)
	case config.Partner:
		return settingsForm(v.Settings(), exact)
	case config.TLS:
		set("cert", v.Cert)
		set("key", v.Key)
		set("client_ca", v.ClientCA)
		form["min_version"] = choose(v.TLS12, "1.2", "1.3")
		form["client_auth"] = choose(v.RequireClient, "require", "request")
	case config.AuthKey:
		set("id", v.ID)
		set("role", v.Role)
		set("tenant", v.Tenant)
		set("peer", v.Peer)
		set("key", v.SHA256)
	case []config.EnvVar:
		for _, e := range v {
			set(e.Name, e.Value)
		}
	default:
		return nil
	}
	return form
}

// gatewayForm is a gateway's table with what the declarations hold that it names.
func gatewayForm(g config.Gateway, exact bool) map[string]any {
	form := settingsForm(g.Settings(), exact)
	if own, ok := g.Protocol.(*config.ACP); ok {
		for _, d := range own.Declared() {
			form["declares "+d.Name] = d.Text
		}
	}
	return form
}

// settingsForm is a table by its settings.
func settingsForm(settings []config.Setting, exact bool) map[string]any {
	form := map[string]any{}
	for _, s := range settings {
		if s.Nested != nil {
			form[s.Key] = settingsForm(s.Nested, exact)
		} else {
			form[s.Key] = plain(reflect.ValueOf(s.Value()), exact)
		}
	}
	return form
}

func choose(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
