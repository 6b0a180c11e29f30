/* What `vramtrace doctor` found: one line each. */
#ifndef VRAMTRACE_OUTPUT_DOCTOR_TEXT_H
#define VRAMTRACE_OUTPUT_DOCTOR_TEXT_H

#include <stdio.h>

#include "doctor/findings.h"
#include "output/style.h"

void doctor_text(const struct style *style, const struct findings *findings);

/* {"schema": "vramtrace.doctor", ...} */
void doctor_json(FILE *out, const struct findings *findings);

#endif
