/* What the C guests of both hosts do with a document: the same code in each. */
typedef unsigned int u32;
typedef unsigned long long u64;

typedef struct { char *at; u32 len; } text;

static char in[8192], out[8192], arena[8192];
static u32 used;

static char unescaped(char c) {
  switch (c) {
  case 'n': return '\n';
  case 't': return '\t';
  case 'r': return '\r';
  default: return c;
  }
}

/* string decodes the string that begins at p, and returns what follows it. */
static const char *string(const char *p, const char *end, text *t) {
  t->at = arena + used;
  t->len = 0;
  for (p++; p < end && *p != '"'; p++) t->at[t->len++] = *p == '\\' ? unescaped(*++p) : *p;
  used += t->len;
  return p + 1;
}

static char *put(char *to, text t) {
  *to++ = '"';
  for (u32 i = 0; i < t.len; i++) {
    char c = t.at[i];
    if (c == '\n') { *to++ = '\\'; *to++ = 'n'; continue; }
    if (c == '\t') { *to++ = '\\'; *to++ = 't'; continue; }
    if (c == '\r') { *to++ = '\\'; *to++ = 'r'; continue; }
    if (c == '"' || c == '\\') *to++ = '\\';
    *to++ = c;
  }
  *to++ = '"';
  return to;
}

static int is(text t, const char *name) {
  u32 i = 0;
  for (; i < t.len && name[i]; i++)
    if (t.at[i] != name[i]) return 0;
  return i == t.len && !name[i];
}

/* work decodes {"state":{…strings…}}, swaps sender and to, and encodes it. */
static u32 work(const char *p, u32 n) {
  text key[32], value[32], *sender = 0, *to = 0, name;
  const char *end = p + n;
  u32 count = 0;
  used = 0;
  while (p < end && *p != '"') p++;
  p = string(p, end, &name);
  while (p < end && *p != '{') p++;
  for (p++; p < end && *p != '}' && count < 32; count++) {
    while (*p != '"') p++;
    p = string(p, end, &key[count]);
    while (*p != '"') p++;
    p = string(p, end, &value[count]);
    if (is(key[count], "sender")) sender = &value[count];
    if (is(key[count], "to")) to = &value[count];
    while (p < end && *p != ',' && *p != '}') p++;
  }
  if (sender && to) { text t = *sender; *sender = *to; *to = t; }
  char *o = out;
  *o++ = '{';
  o = put(o, name);
  *o++ = ':';
  for (u32 i = 0; i < count; i++) {
    *o++ = i ? ',' : '{';
    o = put(o, key[i]);
    *o++ = ':';
    o = put(o, value[i]);
  }
  *o++ = '}';
  *o++ = '}';
  return (u32)(o - out);
}
