// Weights of the search: titles and terms of the manual come before names of the code.
var Scorer = {
  objNameMatch: 8, // the last part of a name in the code is the query
  objPartialMatch: 3, // a name in the code contains the query
  objPrio: {},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
