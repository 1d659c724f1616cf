/*
 * An agent that asks for several pages at once: it is sent their addresses, shows
 * how far it has come, and answers with what it got.
 */
#include "skep.h"

SKEP_DESCRIPTOR({
  "abi": 1, "name": "gather", "version": "1.0.0",
  "description": "Fetches several pages at once.",
  "agents": [{"name": "gather", "description": "Send it addresses, with space between."}],
  "requests": [{"allow": "http", "value": ["https://example.com"], "reason": "to fetch the pages", "optional": true}]
})

enum { MOST = 64 };

static skep_text urls[MOST];
static skep_buf lines[MOST];
static skep_pending asks[MOST];

/* split takes the addresses out of a text. */
static size_t split(skep_text body) {
  size_t n = 0, from = 0;
  for (size_t i = 0; i <= body.len && n < MOST; i++) {
    if (i < body.len && body.at[i] != ' ' && body.at[i] != '\n') continue;
    if (i > from) urls[n++] = (skep_text){body.at + from, i - from};
    from = i + 1;
  }
  return n;
}

static skep_pending fetch(skep_text url) {
  return skep_submit(SKEP_OP_HTTP_FETCH, skep_fetch_json((skep_fetch_request){.url = url}));
}

/* line tells what became of one page. */
static void line(skep_buf *b, skep_pending *p) {
  skep_text answer;
  skep_code code = skep_read_all(p, &answer);
  if (code) {
    skep_put(b, SKEP_CAT(skep_code_name(code), SKEP(": "), skep_last_error().message));
    return;
  }
  skep_fetch_response page = skep_fetched(answer);
  skep_put_int(b, page.status);
  skep_put(b, SKEP(", "));
  skep_put_int(b, (int64_t)page.body.len);
  skep_put(b, SKEP(" bytes"));
}

static skep_code gather(skep_turn *t) {
  size_t n = split(t->body), i;
  for (i = 0; i < n; i++) asks[i] = fetch(urls[i]);
  for (size_t done = 1;; done++) {
    skep_code code = skep_wait_any(asks, n, 30000, &i);
    if (code == SKEP_DEADLINE) break; /* with what there is */
    SKEP_TRY(code);
    if (i == n) break; /* all have been read */
    line(&lines[i], &asks[i]);
    if (skep_emit_progress(urls[i], (double)done / (double)n, NULL)) skep_log(SKEP("progress is not shown"));
  }
  skep_buf report = {0};
  for (i = 0; i < n; i++) {
    if (i) skep_put_char(&report, '\n');
    skep_put(&report, SKEP_CAT(urls[i], SKEP(": "), lines[i].len ? skep_written(&lines[i]) : SKEP("no answer")));
  }
  return skep_task_complete(skep_written(&report));
}
SKEP_AGENT(gather)
