/* hermes_helpers.h - what most authors of an engine would write themselves. hermes_engine.h includes it.
 *
 * No part of the border: everything in here is compiled into the engine, calls nothing but what the engine was given, and may be
 * replaced by code of your own.
 */
#ifndef HERMES_HELPERS_H
#define HERMES_HELPERS_H

#include "hermes_engine.h"
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the other side's struct has that field: HERMES_HAS(hermes_host, host, complete). For a function, ask for NULL as well:
   HERMES_CAN(hermes_host, host, complete). */
#define HERMES_HAS(type, ptr, field) ((size_t)(ptr)->struct_size >= offsetof(type, field) + sizeof((ptr)->field))
#define HERMES_CAN(type, ptr, field) (HERMES_HAS(type, ptr, field) && (ptr)->field != NULL)

/* Bytes of a string literal, as an initialiser of statics; and of any NUL-terminated string. */
#define HERMES_LITERAL(text) { (const uint8_t *)("" text), sizeof(text) - 1 }
static inline hermes_bytes hermes_bytes_of(const char *text) {
  hermes_bytes b;
  b.ptr = (const uint8_t *)text;
  b.len = text ? strlen(text) : 0;
  return b;
}

static inline const hermes_message *hermes_message_at(const hermes_messages *m, size_t i) {
  return (const hermes_message *)(const void *)((const char *)(const void *)m->items + i * m->stride);
}

/* The usual state: what create() shows, and the bodies of update_model, session_reset and update_from_response, and the answer to
   should_compress. */
static inline void hermes_state_init(hermes_state *s, uint64_t context_length) {
  memset(s, 0, sizeof *s);
  s->struct_size = (uint32_t)sizeof *s;
  s->threshold_percent = 0.75;
  s->context_length = context_length;
  s->threshold_tokens = (uint64_t)((double)context_length * s->threshold_percent);
  s->protect_first_n = 3;
  s->protect_last_n = 6;
}
/* own_percent is the engine's configured one, the same in every call, so that switching back returns to it. */
static inline void hermes_state_model(hermes_state *s, double own_percent, const hermes_model_args *a) {
  double p = a->threshold_percent > 0 ? a->threshold_percent : own_percent;
  s->threshold_percent = p;
  s->context_length = a->context_length;
  s->threshold_tokens = (uint64_t)((double)a->context_length * p);
}
static inline void hermes_state_reset(hermes_state *s) {
  s->last_prompt_tokens = s->last_completion_tokens = s->last_total_tokens = 0;
  s->compression_count = 0;
}
/* What the provider did not say counts as 0: -1 means something else in a state. */
static inline void hermes_state_usage(hermes_state *s, const hermes_usage *u) {
  s->last_prompt_tokens = u->prompt_tokens > 0 ? u->prompt_tokens : 0;
  s->last_completion_tokens = u->completion_tokens > 0 ? u->completion_tokens : 0;
  s->last_total_tokens = u->total_tokens > 0 ? u->total_tokens : s->last_prompt_tokens + s->last_completion_tokens;
}
static inline uint32_t hermes_state_over(const hermes_state *s, int64_t prompt_tokens) {
  int64_t n = prompt_tokens >= 0 ? prompt_tokens : s->last_prompt_tokens;
  return n > 0 && s->threshold_tokens > 0 && (uint64_t)n >= s->threshold_tokens;
}
/* The body of the state slot: copies as much as the host knows. */
static inline hermes_status hermes_state_show(const hermes_state *s, hermes_state *out) {
  uint32_t theirs = out->struct_size;
  memcpy(out, s, theirs < sizeof *s ? theirs : sizeof *s);
  out->struct_size = theirs;
  return HERMES_OK;
}

/* ---- numbers of a flat JSON object --------------------------------------------------------------------------------------------

   hermes_json_next() walks {"key": value, ...} without allocating, skips what is no number, and reads numbers the same in every
   locale. It is made for settings (create) and for model_thresholds; it does not validate. */

typedef struct hermes_json {
  const uint8_t *at, *end;
  hermes_bytes key; /* between its quotes, escapes still in it: read it with hermes_key_next() */
  double number;
  int is_number;
} hermes_json;

static inline hermes_json hermes_json_of(hermes_bytes object) {
  hermes_json j;
  memset(&j, 0, sizeof j);
  j.at = object.ptr;
  j.end = object.len > 0 ? object.ptr + object.len : object.ptr;
  return j;
}
static inline void hermes_json_blank(hermes_json *j) {
  while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r')) j->at++;
}
static inline int hermes_json_take(hermes_json *j, char c) {
  hermes_json_blank(j);
  if (j->at >= j->end || *j->at != (uint8_t)c) return 0;
  j->at++;
  return 1;
}
static inline int hermes_json_string(hermes_json *j, hermes_bytes *inside) {
  if (!hermes_json_take(j, '"')) return 0;
  inside->ptr = j->at;
  while (j->at < j->end && *j->at != '"') j->at += (*j->at == '\\' && j->end - j->at > 1) ? 2 : 1;
  if (j->at >= j->end) return 0;
  inside->len = (size_t)(j->at - inside->ptr);
  j->at++;
  return 1;
}
static inline double hermes_json_digits(hermes_json *j) {
  double value, power = 1;
  uint64_t digits = 0;
  int shift = 0, exponent = 0, sign = 1, negative = 0, fraction = 0;
  if (j->at < j->end && *j->at == '-') { negative = 1; j->at++; }
  for (; j->at < j->end && ((*j->at >= '0' && *j->at <= '9') || (*j->at == '.' && !fraction)); j->at++) {
    if (*j->at == '.') { fraction = 1; continue; }
    if (digits < 100000000000000000u) { /* 17 digits say all that a double holds */
      digits = digits * 10 + (uint64_t)(*j->at - '0');
      shift -= fraction;
    } else {
      shift += !fraction;
    }
  }
  if (j->at < j->end && (*j->at == 'e' || *j->at == 'E')) {
    j->at++;
    if (j->at < j->end && (*j->at == '+' || *j->at == '-')) { sign = *j->at == '-' ? -1 : 1; j->at++; }
    for (; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++)
      if (exponent < 100000) exponent = exponent * 10 + (*j->at - '0');
  }
  shift += sign * exponent;
  value = (double)digits;
  for (; shift < -22 && value != 0; shift += 22) value /= 1e22;
  for (; shift > 22 && value != 0 && value <= 1.7e308; shift -= 22) value *= 1e22;
  for (exponent = shift < 0 ? -shift : shift; exponent > 0 && exponent <= 22; exponent--) power *= 10;
  value = shift < 0 ? value / power : value * power;
  return negative ? -value : value;
}
/* One more member? Start with hermes_json_of(). 1 yes, 0 the object is over, -1 this is no JSON object. */
static inline int hermes_json_next(hermes_json *j) {
  hermes_bytes text;
  size_t depth = 0;
  if (hermes_json_take(j, '}')) return 0;
  if (!hermes_json_take(j, ',') && !hermes_json_take(j, '{')) return -1;
  if (hermes_json_take(j, '}')) return 0;
  if (!hermes_json_string(j, &j->key) || !hermes_json_take(j, ':')) return -1;
  hermes_json_blank(j);
  j->is_number = j->at < j->end && (*j->at == '-' || (*j->at >= '0' && *j->at <= '9'));
  if (j->is_number) {
    j->number = hermes_json_digits(j);
    hermes_json_blank(j);
    return j->at < j->end && (*j->at == ',' || *j->at == '}') ? 1 : -1;
  }
  for (; j->at < j->end; hermes_json_blank(j)) {
    if (depth == 0 && (*j->at == ',' || *j->at == '}')) return 1;
    if (*j->at == '"') {
      if (!hermes_json_string(j, &text)) return -1;
      continue;
    }
    if (*j->at == '{' || *j->at == '[') depth++;
    if (*j->at == '}' || *j->at == ']') {
      if (depth == 0) return -1;
      depth--;
    }
    j->at++;
  }
  return -1;
}

/* A key's bytes one by one, escapes resolved: 0..255, or -1 at its end. Start with hermes_key_of(). */
typedef struct hermes_key {
  hermes_bytes rest;
  uint8_t utf8[4];
  unsigned used, size;
} hermes_key;
static inline hermes_key hermes_key_of(hermes_bytes key) {
  hermes_key k;
  memset(&k, 0, sizeof k);
  k.rest = key;
  return k;
}
static inline int32_t hermes_key_hex(hermes_bytes b, size_t from) {
  int32_t n = 0;
  size_t i;
  if (b.len < from + 4) return -1;
  for (i = from; i < from + 4; i++) {
    uint8_t c = b.ptr[i];
    if (c >= '0' && c <= '9') n = n * 16 + (c - '0');
    else if ((c | 32) >= 'a' && (c | 32) <= 'f') n = n * 16 + ((c | 32) - 'a' + 10);
    else return -1;
  }
  return n;
}
static inline int hermes_key_next(hermes_key *k) {
  static const char plain[] = "b\bf\fn\nr\rt\t";
  int32_t code, low;
  size_t i, eaten = 2;
  if (k->used < k->size) return k->utf8[k->used++];
  if (k->rest.len == 0) return -1;
  if (k->rest.ptr[0] != '\\' || k->rest.len < 2) {
    k->rest.len--;
    return *k->rest.ptr++;
  }
  code = k->rest.ptr[1];
  for (i = 0; i + 1 < sizeof plain; i += 2)
    if (plain[i] == code) { code = plain[i + 1]; break; }
  if (k->rest.ptr[1] == 'u' && (code = hermes_key_hex(k->rest, 2)) >= 0) {
    eaten = 6;
    low = k->rest.len >= 12 && k->rest.ptr[6] == '\\' && k->rest.ptr[7] == 'u' ? hermes_key_hex(k->rest, 8) : -1;
    if (code >= 0xD800 && code < 0xDC00 && low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      eaten = 12;
    } else if (code >= 0xD800 && code < 0xE000) {
      code = 0xFFFD;
    }
  } else if (code < 0) {
    code = 0xFFFD;
  }
  k->rest.ptr += eaten;
  k->rest.len -= eaten;
  k->used = 1;
  if (code < 0x80) {
    k->size = 1;
    k->utf8[0] = (uint8_t)code;
  } else if (code < 0x800) {
    k->size = 2;
    k->utf8[0] = (uint8_t)(0xC0 | (code >> 6));
    k->utf8[1] = (uint8_t)(0x80 | (code & 63));
  } else if (code < 0x10000) {
    k->size = 3;
    k->utf8[0] = (uint8_t)(0xE0 | (code >> 12));
    k->utf8[1] = (uint8_t)(0x80 | ((code >> 6) & 63));
    k->utf8[2] = (uint8_t)(0x80 | (code & 63));
  } else {
    k->size = 4;
    k->utf8[0] = (uint8_t)(0xF0 | (code >> 18));
    k->utf8[1] = (uint8_t)(0x80 | ((code >> 12) & 63));
    k->utf8[2] = (uint8_t)(0x80 | ((code >> 6) & 63));
    k->utf8[3] = (uint8_t)(0x80 | (code & 63));
  }
  return k->utf8[0];
}

/* The number under that key of a flat JSON object, else the fallback. The last of equal keys counts. */
static inline double hermes_json_number(hermes_bytes object, const char *key, double fallback) {
  hermes_json j = hermes_json_of(object);
  while (hermes_json_next(&j) == 1) {
    hermes_key k = hermes_key_of(j.key);
    size_t i = 0;
    while (key[i] != 0 && hermes_key_next(&k) == (int)(uint8_t)key[i]) i++;
    if (key[i] == 0 && hermes_key_next(&k) == -1 && j.is_number) fallback = j.number;
  }
  return fallback;
}

/* ---- thresholds per model ----------------------------------------------------------------------------------------------------- */

static inline int hermes_lower(int c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }
static inline int hermes_digit(int c) { return c >= '0' && c <= '9'; }

/* How long the rest of the key is if the model's name holds it, else 0. A match never splits a number. */
static inline size_t hermes_key_within(hermes_key key, hermes_bytes model) {
  size_t from, to;
  for (from = 0; from < model.len; from++) {
    hermes_key k = key;
    int c = hermes_key_next(&k), first = c, last = c;
    for (to = from; c >= 0 && to < model.len && hermes_lower(c) == hermes_lower(model.ptr[to]); to++) {
      last = c;
      c = hermes_key_next(&k);
    }
    if (c >= 0 || to == from) continue;
    if (hermes_digit(first) && from > 0 && hermes_digit(model.ptr[from - 1])) continue;
    if (hermes_digit(last) && to < model.len && hermes_digit(model.ptr[to])) continue;
    return to - from;
  }
  return 0;
}

/* The threshold of a model in a map such as hermes_model_args.model_thresholds, or 0: no match.
 *
 * A key counts where the model's name holds it, ASCII letters compared without case; the longest wins. "provider:rest" counts for
 * that provider only, as long as its rest is, and before a bare key of that length; it counts as a bare key, too, where the model's
 * name holds all of it. Of equals the first wins. A match never splits a number: "glm-5" is not in "glm-51". An empty key and
 * a value that is no number in (0, 1] are ignored. What is no JSON object matches nothing. */
static inline double hermes_resolve_model_threshold(hermes_bytes map_json, hermes_bytes model, hermes_bytes provider) {
  double best = 0;
  size_t best_rank = 0, length, i;
  int more;
  hermes_json j = hermes_json_of(map_json);
  while ((more = hermes_json_next(&j)) == 1) {
    hermes_key k = hermes_key_of(j.key);
    size_t rank = 2 * hermes_key_within(k, model);
    for (i = 0; i < provider.len; i++)
      if (hermes_lower(hermes_key_next(&k)) != hermes_lower(provider.ptr[i])) break;
    if (provider.len > 0 && i == provider.len && hermes_key_next(&k) == ':') {
      length = hermes_key_within(k, model);
      if (length > 0 && 2 * length + 1 > rank) rank = 2 * length + 1;
    }
    if (!j.is_number || !(j.number > 0 && j.number <= 1)) continue;
    if (rank > best_rank) {
      best_rank = rank;
      best = j.number;
    }
  }
  return more == 0 ? best : 0;
}

#ifdef __cplusplus
}
#endif
#endif
