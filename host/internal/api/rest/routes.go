package rest

import (
	"net/http"

	"skep/host/internal/api/auth"
)

// route is a method and a path with its role and handler.
type route struct {
	method string
	// path is in the syntax of net/http's patterns.
	path string
	// role is the role that the caller needs; empty means no credentials.
	role   auth.Role
	handle func(*call) error
}

// mailRoutes are MAIL's routes, on httprouter.
func mailRoutes() []route {
	return []route{
		{http.MethodGet, "/", "", (*call).root},
		{http.MethodGet, "/health", "", (*call).getHealth},
		{http.MethodPost, "/health", auth.Admin, (*call).postHealth},
		{http.MethodGet, "/status", auth.User, (*call).status},
		{http.MethodGet, "/whoami", auth.User, (*call).whoami},
		{http.MethodPost, "/message", auth.User, (*call).postMessage},
		{http.MethodGet, "/tasks", auth.User, (*call).tasks},
		{http.MethodGet, "/tasks/{task_id}", auth.User, (*call).taskByPath},
		{http.MethodGet, "/task", auth.User, (*call).taskByBody},
		{http.MethodGet, "/swarms", "", (*call).swarms},
		{http.MethodPost, "/swarms", auth.Admin, (*call).registerSwarm},
		{http.MethodPost, "/swarms/register", auth.Admin, (*call).registerSwarm},
		{http.MethodGet, "/swarms/dump", auth.Admin, (*call).dumpSwarm},
		{http.MethodPost, "/swarms/load", auth.Admin, (*call).loadSwarm},
		{http.MethodPost, "/interswarm/forward", auth.Agent, (*call).forward},
		{http.MethodPost, "/interswarm/back", auth.Agent, (*call).back},
		{http.MethodPost, "/interswarm/message", auth.User, (*call).interswarmMessage},
		{http.MethodPost, "/interswarm/response", "", (*call).interswarmResponse},
		{http.MethodGet, "/openapi.json", "", (*call).openAPI},
		{http.MethodGet, "/docs", "", (*call).docs},
	}
}

// skepPrefix begins skep's own routes.
const skepPrefix = "/skep/v1/"

// skepRoutes are skep's own routes, on net/http's multiplexer.
func skepRoutes() []route {
	return []route{
		{http.MethodGet, skepPrefix + "version", auth.User, (*call).version},
		{http.MethodGet, skepPrefix + "tasks", auth.User, (*call).listTasks},
		{http.MethodGet, skepPrefix + "tasks/{task_id}", auth.User, (*call).showTask},
		{http.MethodGet, skepPrefix + "tasks/{task_id}/events", auth.User, (*call).followTask},
		{http.MethodGet, skepPrefix + "tasks/{task_id}/history", auth.User, (*call).history},
		{http.MethodGet, skepPrefix + "tasks/{task_id}/turns", auth.User, (*call).turns},
		{http.MethodGet, skepPrefix + "tasks/{task_id}/mail", auth.User, (*call).taskMail},
		{http.MethodPost, lookPath, auth.Admin, (*call).lookAtTask},
		{http.MethodPost, skepPrefix + "tasks/{task_id}/cancel", auth.User, (*call).cancelTask},
		{http.MethodPost, skepPrefix + "agents/{agent}/release", auth.Operator, (*call).releaseAgent},
		{http.MethodGet, skepPrefix + "tenants", auth.Admin, (*call).listTenants},
		{http.MethodPost, skepPrefix + "tenants/{tenant}/erase", auth.Operator, (*call).eraseTenant},
		{http.MethodGet, skepPrefix + "definition", auth.Admin, (*call).showDefinition},
		{http.MethodDelete, skepPrefix + "definition", auth.Admin, (*call).unloadDefinition},
		{http.MethodGet, skepPrefix + "peers", auth.Admin, (*call).listPeers},
		{http.MethodDelete, skepPrefix + "peers/{name}", auth.Admin, (*call).removePeer},
		{http.MethodPost, skepPrefix + "peers/{name}/ping", auth.Admin, (*call).pingPeer},
		{http.MethodGet, skepPrefix + "gateways", auth.Admin, (*call).listGateways},
		{http.MethodGet, skepPrefix + "gateways/{name}", auth.Admin, (*call).showGateway},
		{http.MethodPost, skepPrefix + "partners/{name}/ping", auth.Admin, (*call).pingPartner},
		{http.MethodGet, skepPrefix + "dead-letters", auth.Admin, (*call).deadLetters},
		{http.MethodPost, skepPrefix + "dead-letters/{id}/resend", auth.Admin, (*call).resend},
		{http.MethodGet, skepPrefix + "pulse", auth.User, (*call).followPulse},
		{http.MethodGet, skepPrefix + "questions", auth.User, (*call).listQuestions},
		{http.MethodPost, answerPath, auth.User, (*call).answerQuestion},
		{http.MethodGet, skepPrefix + "plan", auth.Operator, (*call).plan},
		{http.MethodPost, skepPrefix + "reload", auth.Operator, (*call).reload},
		{http.MethodGet, clusterPath, auth.Operator, (*call).listCluster},
		{http.MethodPost, clusterPath + "/hosts/{host_id}/drain", auth.Operator, (*call).drainHost},
		{http.MethodPost, clusterPath + "/finalize", auth.Operator, (*call).finalizeCluster},
		{http.MethodGet, logLevelPath, auth.Operator, (*call).showLogLevels},
		{http.MethodPost, logLevelPath, auth.Operator, (*call).setLogLevel},
		{http.MethodGet, skepPrefix + "usage", auth.Admin, (*call).usage},
		{http.MethodPost, tokensPath, auth.Admin, (*call).createToken},
		{http.MethodGet, tokensPath, auth.Admin, (*call).listTokens},
		{http.MethodDelete, tokensPath + "/{token_id}", auth.Admin, (*call).revokeToken},
	}
}

// debugRoutes show the swarm's definition and serve a viewer. They need [server]
// debug and a key.
func debugRoutes() []route {
	return []route{
		{http.MethodPost, "/responses", auth.User, (*call).postResponses},
		{http.MethodGet, "/ui/agents", auth.User, (*call).uiAgents},
		{http.MethodPost, "/ui/message", auth.User, (*call).uiMessage},
		{http.MethodGet, "/ui/tasks", auth.User, (*call).uiTasks},
		{http.MethodGet, "/ui/task/{task_id}", auth.User, (*call).uiTask},
		{http.MethodGet, "/ui/task-summary/{task_id}", auth.User, (*call).uiSummary},
		{http.MethodGet, "/ui/dump-events", auth.User, (*call).uiDump},
	}
}
