/* The terminal of the live view. */
#ifndef VRAMTRACE_OUTPUT_TOP_SCREEN_H
#define VRAMTRACE_OUTPUT_TOP_SCREEN_H

#include "output/top_text.h"

/* Keys, beside those for moving that the screen itself takes. */
enum top_key {
	TOP_KEY_NONE,  /* the time is over */
	TOP_KEY_DRAW,  /* something to be drawn anew */
	TOP_KEY_ORDER, /* the next order */
	TOP_KEY_FREEZE,
	TOP_KEY_QUIT,
};

struct top_screen {
	bool stack;	  /* the selected row's is shown, not the list */
	bool frozen;	  /* said on the screen */
	size_t selected;  /* among the rows that the filter leaves */
	size_t n_shown;	  /* of those */
	char filter[64];  /* "": none */
	bool editing;	  /* the filter */
	const char *note; /* a line at the bottom; NULL: the keys */
};

/* Takes the terminal. False: standard input and output are none. */
bool top_screen_begin(void);
void top_screen_end(void);

/* Draws the view. */
void top_screen_draw(struct top_screen *screen, const struct top_view *view);

/* Waits for a key, at most so long. */
enum top_key top_screen_wait(struct top_screen *screen, unsigned int milliseconds);

#endif
