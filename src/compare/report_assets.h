/* What report_assets.S puts into the program: texts that end with a NUL. */
#ifndef LS_COMPARE_REPORT_ASSETS_H
#define LS_COMPARE_REPORT_ASSETS_H

extern const char ls_report_template[]; /* report/template.html, with {{NAME}} for each of these */
extern const char ls_report_style[];    /* report/report.css */
extern const char ls_report_script[];   /* report/report.js */
extern const char ls_report_chart[];    /* Chart.js, minified */

#endif
