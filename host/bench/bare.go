package main

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/julienschmidt/httprouter"
)

// bareJob serves what HTTP itself costs, until the parent closes the pipe: an echo,
// a text of a size, and events that were made before. It takes bodies as large as
// the attacked host does.
func bareJob(_ context.Context, p pipe, _ []string) error {
	g := newSignal()
	router := httprouter.New()
	router.POST("/message", echo)
	router.GET("/task", bareText)
	router.GET("/events", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) { bareEvents(w, r, g) })
	router.Handler(http.MethodPost, "/open", g)
	return p.serveHTTP(http.MaxBytesHandler(router, fits))
}

func bareText(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	n, err := strconv.Atoi(r.FormValue("size"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, strings.Repeat("x", n))
}

// bareEvents sends all events of a burst in one piece: nothing is faster.
func bareEvents(w http.ResponseWriter, r *http.Request, g *signal) {
	w.Header().Set("Content-Type", "text/event-stream")
	wait := g.next() // before the reader knows that it is awaited
	flush := http.NewResponseController(w).Flush
	if flush() != nil {
		return
	}
	b, err := wait(r.Context())
	if err != nil {
		return
	}
	const around = len("data: \r\n\r\n")
	event := "data: " + strings.Repeat("x", max(b.size-around, 0)) + "\r\n\r\n"
	_, _ = io.WriteString(w, strings.Repeat(event, b.events))
}
