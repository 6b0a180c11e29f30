#include "output/top_screen.h"

#include <curses.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY_ESCAPE 27
#define KEY_DELETE 127

/* Lines of text that are made as for a file. */
struct lines {
	char *text;
	size_t bytes;
	struct style style;
};

bool top_screen_begin(void)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return false;
	if (!newterm(NULL, stdout, stdin))
		return false;
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	return true;
}

void top_screen_end(void)
{
	endwin();
}

static bool lines_begin(struct lines *lines)
{
	*lines = (struct lines){0};
	lines->style.out = open_memstream(&lines->text, &lines->bytes);
	if (!lines->style.out)
		return false;
	lines->style.width = (size_t)COLS;
	return true;
}

/* Draws from line y on, as many as fit. Returns the line behind them. */
static int lines_draw(struct lines *lines, int y, attr_t attributes)
{
	char *line;

	fclose(lines->style.out);
	line = lines->text;
	while (line && *line && y < LINES - 1) {
		char *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		attrset((int)attributes);
		mvaddnstr(y++, 0, line, 4 * COLS);
		line = end ? end + 1 : NULL;
	}
	attrset(A_NORMAL);
	free(lines->text);
	return y;
}

static int draw_rows(struct top_screen *screen, const struct top_view *view, int y)
{
	size_t room = LINES - 1 > y ? (size_t)(LINES - 1 - y) : 0, n = 0;
	size_t first = screen->selected >= room ? screen->selected + 1 - room : 0;
	struct lines lines;

	for (size_t i = 0; i < view->top->n_rows; i++) {
		bool shown;

		if (!lines_begin(&lines))
			break;
		shown = top_put_row(&lines.style, view, &view->top->rows[i]);
		if (shown && n >= first && n - first < room) {
			y = lines_draw(&lines, y, n == screen->selected ? A_REVERSE : A_NORMAL);
		} else {
			fclose(lines.style.out);
			free(lines.text);
		}
		n += shown;
		/* What lies below need not be looked at unless it is to be counted. */
		if (n > first + room && n > screen->selected + 1)
			break;
	}
	screen->n_shown = n;
	return y;
}

static const struct top_row *selected_row(
	const struct top_screen *screen, const struct top_view *view)
{
	size_t n = 0;

	for (size_t i = 0; i < view->top->n_rows; i++) {
		struct lines lines;
		bool shown;

		if (!lines_begin(&lines))
			return NULL;
		shown = top_put_row(&lines.style, view, &view->top->rows[i]);
		fclose(lines.style.out);
		free(lines.text);
		if (shown && n++ == screen->selected)
			return &view->top->rows[i];
	}
	return NULL;
}

static void draw_foot(const struct top_screen *screen)
{
	attrset(A_BOLD);
	if (screen->editing)
		mvprintw(LINES - 1, 0, "filter: %s_", screen->filter);
	else if (screen->note)
		mvprintw(LINES - 1, 0, "%s", screen->note);
	else
		mvprintw(LINES - 1, 0,
			"%ss sort  f filter  space %s  up/down select  enter stack  q quit",
			screen->frozen ? "FROZEN  " : "", screen->frozen ? "go on" : "freeze");
	attrset(A_NORMAL);
}

void top_screen_draw(struct top_screen *screen, const struct top_view *view)
{
	const struct top_row *row = screen->stack ? selected_row(screen, view) : NULL;
	struct lines lines;
	int y = 0;

	erase();
	if (lines_begin(&lines)) {
		if (row)
			top_put_stack(&lines.style, view, row);
		else
			top_put_head(&lines.style, view);
		y = lines_draw(&lines, y, A_NORMAL);
	}
	if (!row)
		draw_rows(screen, view, y);
	draw_foot(screen);
	refresh();
}

static enum top_key edit(struct top_screen *screen, int key)
{
	size_t n = strlen(screen->filter);

	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		screen->editing = false;
	} else if (key == KEY_ESCAPE) {
		screen->editing = false;
		screen->filter[0] = '\0';
	} else if ((key == KEY_BACKSPACE || key == KEY_DELETE || key == '\b') && n) {
		screen->filter[n - 1] = '\0';
	} else if (key >= ' ' && key < KEY_DELETE && n + 1 < sizeof(screen->filter)) {
		screen->filter[n] = (char)key;
		screen->filter[n + 1] = '\0';
	}
	screen->selected = 0;
	return TOP_KEY_DRAW;
}

static enum top_key press(struct top_screen *screen, int key)
{
	switch (key) {
	case ERR:
		return TOP_KEY_NONE;
	case 'q':
		return TOP_KEY_QUIT;
	case 's':
		return TOP_KEY_ORDER;
	case ' ':
		return TOP_KEY_FREEZE;
	case 'f':
	case '/':
		screen->editing = true;
		break;
	case KEY_DOWN:
	case 'j':
		screen->selected += screen->selected + 1 < screen->n_shown;
		break;
	case KEY_UP:
	case 'k':
		screen->selected -= screen->selected > 0;
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
		screen->stack = !screen->stack;
		break;
	case KEY_ESCAPE:
		screen->stack = false;
		break;
	default:
		break;
	}
	return TOP_KEY_DRAW;
}

enum top_key top_screen_wait(struct top_screen *screen, unsigned int milliseconds)
{
	int key;

	timeout((int)milliseconds);
	key = getch();
	return screen->editing && key != ERR ? edit(screen, key) : press(screen, key);
}
