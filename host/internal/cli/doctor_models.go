package cli

import (
	"context"
	"regexp"
	"strings"

	"skep/host/internal/definition/config"
	"skep/host/internal/diagnosis"
)

// silentModel is a line of readyz about a model that has not answered.
var silentModel = regexp.MustCompile(`(?m)^warning: (\[models\.[^\]\n]+\]) (does not answer: .*)$`)

// checkModelsOfHost reports the models that have not answered the host that runs. It calls none.
func (d *hostDoctor) checkModelsOfHost(ctx context.Context, cfg *config.Config) {
	page, err := fetchPage(ctx, cfg.Server.AdminListen, readyPage)
	if err != nil {
		return // the host stops, or its operators' listener is another's
	}
	for _, m := range silentModel.FindAllStringSubmatch(string(page), -1) {
		id, fix := diagnosis.ModelSilent, "start the provider, or correct base_url and run skep reload"
		if strings.Contains(m[2], "malformed (calls") {
			fix = "what answers at base_url does not speak the protocol of the provider: correct base_url or provider, and run skep reload"
		}
		if strings.Contains(m[2], "status 401") || strings.Contains(m[2], "status 403") {
			id, fix = diagnosis.ModelRefuses, "set the variable of api_key to a key of this provider, and start the host again"
		}
		d.add(id, diagnosis.Warning, m[1], "the model "+m[2], fix)
	}
}
